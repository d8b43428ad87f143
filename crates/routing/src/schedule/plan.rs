//! What the scheduler decided.

use super::Memo;
use crate::fleet::Pod;
use smallvec::SmallVec;
use std::sync::Arc;

/// Pods in a plan at most: the best one and the ones to try when it fails. As the original router.
pub const MAX_ATTEMPTS: usize = 5;

/// The pods to try, and what to record when one has served the request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The pods with the greatest totals, best first; never empty.
    pub attempts: SmallVec<[Arc<Pod>; MAX_ATTEMPTS]>,
    /// To be given to [`super::Scheduler::served`]; `None` when there is nothing to record.
    pub memo: Option<Memo>,
}

impl Plan {
    /// Lets these pods be asked after the others. Their order among themselves stays.
    pub fn put_behind(&mut self, is_behind: impl Fn(&Pod) -> bool) {
        self.attempts.sort_by_key(|pod| is_behind(pod));
    }
}

/// Why no pod was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There were no pods to begin with.
    #[error("there are no pods")]
    NoPods,
    /// A Filter plugin dropped the last candidates.
    #[error("pods have all been filtered out by {plugin:?}")]
    AllFiltered {
        /// Its name.
        plugin: &'static str,
    },
    /// Prefill and decode are split, and no pod does decode.
    #[error("no decode pod found")]
    NoDecodePods,
    /// Prefill and decode are split, and no decode pod has a prefill pod in its group that may be used.
    #[error("no valid prefill-decode pod pairs found")]
    NoPairs,
    /// A Score plugin did not score every row: a defect of the plugin.
    #[error("score plugin {plugin:?} left pods without a score")]
    Unscored {
        /// Its name.
        plugin: &'static str,
    },
}
