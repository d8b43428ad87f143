//! What sums were, some time ago. What happened in a window is the difference between now and then, so nothing is ever
//! reset under those who add.

use std::collections::VecDeque;
use std::time::Duration;

/// The longest window.
pub(super) const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Sums with the time since the start at which they were noted, oldest first; of those that are older than the longest
/// window only the youngest.
#[derive(Debug, Default)]
pub(super) struct History<T>(VecDeque<(Duration, T)>);

impl<T: Copy + Default> History<T> {
    /// Notes sums.
    pub(super) fn note(&mut self, at: Duration, sums: T) {
        self.0.push_back((at, sums));
        while self
            .0
            .get(1)
            .is_some_and(|(noted, _)| *noted + LONGEST <= at)
        {
            self.0.pop_front();
        }
    }

    /// What the sums were before the last `window`: nothing, if that is before the first note.
    pub(super) fn before(&self, window: Duration, at: Duration) -> T {
        let noted = match at.checked_sub(window) {
            None => 0,
            Some(start) => self.0.partition_point(|(noted, _)| *noted <= start),
        };
        let before = noted.checked_sub(1).and_then(|at| self.0.get(at));
        before.map(|(_, sums)| *sums).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
