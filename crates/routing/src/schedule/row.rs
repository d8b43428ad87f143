//! One candidate as all plugins of a request see it.

use crate::fleet::{Gauges, Pod};
use smallvec::SmallVec;
use std::sync::Arc;

/// A pod and a picture of its load. Taken once per request: the figures move while plugins run, and a plugin that
/// normalises by the greatest must meet the same greatest in its second pass.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// Requests that this router has on the pod.
    pub in_flight: u32,
    /// What the engine last said; `None` when it never did or that is too old. Such a pod is unknown, not idle.
    pub gauges: Option<Gauges>,
}

/// The candidates of a request, ascending by pod id.
pub type Rows<'a> = SmallVec<[Row<'a>; 16]>;

/// A picture of these pods.
pub(super) fn picture(pods: &[Arc<Pod>]) -> Rows<'_> {
    let mut rows: Rows<'_> = pods.iter().map(Row::of).collect();
    // A server's pods are sorted; a caller's own selection need not be.
    if !rows.is_sorted_by_key(|row| row.pod.id) {
        rows.sort_unstable_by_key(|row| row.pod.id);
    }
    rows
}

impl<'a> Row<'a> {
    fn of(pod: &'a Arc<Pod>) -> Self {
        Self {
            pod,
            in_flight: pod.load.in_flight(),
            gauges: pod.load.known(),
        }
    }
}
