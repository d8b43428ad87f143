//! The last decisions.

use super::Decision;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Decisions that are kept: a score for each of as many models as prompts are kept of, some 2 KiB each.
const KEPT: usize = 640;

/// The sampled decisions whose requests ended last.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<VecDeque<Arc<Decision>>>);

impl Decisions {
    /// Adds one. When there are enough the oldest of the model that has most leaves, so that a busy model does not push
    /// out what is known of the others.
    pub(crate) fn push(&self, decision: Decision) {
        let mut kept = self.0.lock();
        let oldest = (kept.len() >= KEPT)
            .then(|| oldest_of_the_busiest(&kept))
            .flatten()
            .and_then(|at| kept.remove(at));
        kept.push_back(Arc::new(decision));
        drop(kept);
        // Freed without the lock.
        drop(oldest);
    }

    /// The ones that came last, the last first, `limit` at most.
    pub(crate) fn newest_first(&self, limit: usize) -> Vec<Arc<Decision>> {
        let mut all: Vec<_> = self.0.lock().iter().cloned().collect();
        all.sort_by(|a, b| b.at.total_cmp(&a.at));
        all.truncate(limit);
        all
    }
}

fn oldest_of_the_busiest(kept: &VecDeque<Arc<Decision>>) -> Option<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for decision in kept {
        *counts.entry(&decision.model).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    kept.iter()
        .position(|decision| counts.get(&*decision.model) == Some(&most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::Candidate;
    use routing::fleet::ObjectName;

    fn of(model: &str, at: f64) -> Decision {
        Decision {
            at,
            request_id: String::new(),
            model: model.to_owned(),
            model_server: String::new(),
            pod: Candidate::unscored(ObjectName::new("default", "p")),
            prefill_pod: None,
            hashed_blocks: 0,
            attempts: 1,
            pinned: false,
            status: 200,
            ttft_ms: None,
            prompt_tokens: None,
            cached_tokens: None,
            candidates: Vec::new(),
            filtered: Vec::new(),
        }
    }

    #[test]
    fn a_busy_model_does_not_push_out_the_others() {
        let decisions = Decisions::default();
        for n in 0..10 {
            decisions.push(of("rare", f64::from(n)));
        }
        for n in 10..2000 {
            decisions.push(of("busy", f64::from(n)));
        }
        let all = decisions.newest_first(usize::MAX);
        let rare = all.iter().filter(|d| d.model == "rare").count();
        assert_eq!((all.len(), rare), (KEPT, 10));
        assert_eq!((all[0].at, all[629].at), (1999.0, 1370.0), "the newest");
        assert_eq!(decisions.newest_first(3).len(), 3);
    }
}
