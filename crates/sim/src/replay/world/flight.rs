//! A request under way.

use routing::fleet::InFlight;
use routing::schedule::{MAX_ATTEMPTS, Memo};
use smallvec::SmallVec;

/// A pod that may be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// The engine's number.
    pub(super) engine: usize,
    /// Prompt tokens expected in its cache.
    pub(super) expected: usize,
}

/// A request that a pod has, or that looks for one.
pub(super) struct Flight {
    /// The router that decides; none where the oracle does.
    pub(super) replica: Option<usize>,
    /// What is recorded when it has ended well.
    pub(super) memo: Option<Memo>,
    attempts: SmallVec<[Attempt; MAX_ATTEMPTS]>,
    /// Attempts begun.
    begun: usize,
    guard: Option<InFlight>,
    /// Seconds from arrival, once the client has seen it.
    pub(super) first_token: Option<f64>,
}

impl Flight {
    pub(super) fn new(
        replica: Option<usize>,
        memo: Option<Memo>,
        attempts: impl Iterator<Item = Attempt>,
    ) -> Self {
        Self {
            replica,
            memo,
            attempts: attempts.collect(),
            begun: 0,
            guard: None,
            first_token: None,
        }
    }

    /// Begins the next attempt, if one is left.
    pub(super) fn turn(&mut self) -> Option<Attempt> {
        let next = self.attempts.get(self.begun).copied();
        self.begun += usize::from(next.is_some());
        next
    }

    /// The attempt that was begun last.
    fn current(&self) -> Option<Attempt> {
        self.attempts.get(self.begun.checked_sub(1)?).copied()
    }

    /// Counts in flight on a pod, or no longer.
    pub(super) fn hold(&mut self, guard: Option<InFlight>) {
        self.guard = guard;
    }

    /// The engine that has it.
    pub(super) fn engine(&self) -> Option<usize> {
        self.current().map(|attempt| attempt.engine)
    }

    /// Prompt tokens that were expected in that engine's cache.
    pub(super) fn expected(&self) -> usize {
        self.current().map_or(0, |attempt| attempt.expected)
    }
}
