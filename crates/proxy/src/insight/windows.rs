//! How much of the prompts the router found in its index, over the last minutes.
//!
//! A request adds to sums since the start; once a second their values are noted. So a request pays three additions.

use super::history::History;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Sums since the start, and what they were.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    requests: AtomicU64,
    matched: AtomicU64,
    hashed: AtomicU64,
    evictions: AtomicU64,
    past: Mutex<History<Tally>>,
}

/// What prefix look-ups found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Look-ups: one for a request, or one for each pass of a pair of pods.
    pub(crate) requests: u64,
    /// Blocks of the longest match of each.
    pub(crate) matched: u64,
    /// Blocks of each prompt.
    pub(crate) hashed: u64,
    /// Entries that were dropped because a list was full.
    pub(crate) evictions: u64,
}

impl Tally {
    /// The share of the blocks that was found; `None` without any.
    pub(crate) fn ratio(&self) -> Option<f64> {
        (self.hashed > 0).then(|| self.matched as f64 / self.hashed as f64)
    }

    fn since(self, then: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(then.requests),
            matched: self.matched.saturating_sub(then.matched),
            hashed: self.hashed.saturating_sub(then.hashed),
            evictions: self.evictions.saturating_sub(then.evictions),
        }
    }
}

impl Windows {
    /// A look-up found `best` of `hashed` blocks.
    pub(crate) fn add(&self, best: u32, hashed: usize) {
        self.requests.fetch_add(1, Relaxed);
        self.matched.fetch_add(u64::from(best), Relaxed);
        self.hashed.fetch_add(hashed as u64, Relaxed);
    }

    /// Entries were dropped because a list was full.
    pub(crate) fn evicted(&self, entries: usize) {
        self.evictions.fetch_add(entries as u64, Relaxed);
    }

    /// Notes the sums. To be called about once a second; `at` is the time since the start.
    pub(crate) fn note(&self, at: Duration) {
        self.past.lock().note(at, self.sums());
    }

    /// What was found in the last `window`, give or take a second; `at` is the time since the start.
    pub(crate) fn over(&self, window: Duration, at: Duration) -> Tally {
        let then = self.past.lock().before(window, at);
        self.sums().since(then)
    }

    fn sums(&self) -> Tally {
        Tally {
            requests: self.requests.load(Relaxed),
            matched: self.matched.load(Relaxed),
            hashed: self.hashed.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_window_has_what_happened_in_it() {
        let windows = Windows::default();
        for second in 0..2000 {
            windows.note(s(second));
            windows.add(1, 4);
            windows.evicted(2);
        }
        let now = s(1999);
        for (window, requests) in [(60, 61), (300, 301), (900, 901)] {
            let tally = windows.over(s(window), now);
            let wanted = Tally {
                requests,
                matched: requests,
                hashed: 4 * requests,
                evictions: 2 * requests,
            };
            assert_eq!((tally, tally.ratio()), (wanted, Some(0.25)));
        }
        assert!(windows.past.lock().len() <= 902, "what is older is dropped");
    }

    #[test]
    fn a_young_router_counts_from_its_start() {
        let windows = Windows::default();
        assert_eq!(windows.over(s(60), s(1)).ratio(), None);
        windows.add(2, 3);
        windows.note(s(30));
        windows.add(0, 1);
        assert_eq!(windows.over(s(60), s(59)).requests, 2);
        assert_eq!(windows.over(s(60), s(60)).requests, 2, "not noted before");
        assert_eq!(windows.over(s(60), s(95)).requests, 1);
    }
}
