//! The last decisions.

use super::Decision;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::VecDeque;

/// Decisions that are kept.
const KEPT: usize = 200;

/// The sampled decisions whose requests ended last.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<VecDeque<Decision>>);

impl Decisions {
    /// Adds one, in place of the oldest when there are enough.
    pub(crate) fn push(&self, decision: Decision) {
        let mut kept = self.0.lock();
        let oldest = (kept.len() >= KEPT).then(|| kept.pop_front());
        kept.push_back(decision);
        drop(kept);
        // Freed without the lock.
        drop(oldest);
    }

    /// All of them, the ones that came last first.
    pub(crate) fn newest_first(&self) -> Vec<Value> {
        let kept = self.0.lock();
        let mut all: Vec<&Decision> = kept.iter().collect();
        all.sort_by(|a, b| b.at.total_cmp(&a.at));
        all.into_iter().map(Decision::json).collect()
    }
}
