//! The sums of one model.

use crate::insight::history::History;
use parking_lot::Mutex;
use routing::fleet::CacheTokens;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Shares are summed in millionths.
const MILLION: f64 = 1e6;
/// Time between two notes. An engine has told after it what it was asked before it: its counters are read once a second.
const PERIOD: Duration = Duration::from_secs(15);

/// Sums since the start, and what they were.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Requests that were scored and served, their tokens, and of these what the pods were thought to hold.
    scored: AtomicU64,
    tokens: AtomicU64,
    expected: AtomicU64,
    /// Requests whose engine reported, and the sums of their shares.
    reported: AtomicU64,
    predicted: AtomicU64,
    actual: AtomicU64,
    /// What engines have counted.
    queried: AtomicU64,
    hit: AtomicU64,
    past: Mutex<Past>,
}

#[derive(Debug, Default)]
struct Past {
    sums: History<Totals>,
    noted: Option<Duration>,
    /// Requests that were scored before the note before the last.
    settled: u64,
    latest: u64,
}

/// The same as plain numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    scored: u64,
    tokens: u64,
    expected: u64,
    reported: u64,
    predicted: u64,
    actual: u64,
    queried: u64,
    hit: u64,
    /// Requests that engines must have counted by now, if they count.
    settled: u64,
}

impl Sums {
    /// A request of so many tokens, and the share of them that its pod was thought to hold.
    pub(super) fn scored(&self, share: f64, tokens: u64) {
        self.scored.fetch_add(1, Relaxed);
        self.tokens.fetch_add(tokens, Relaxed);
        // Not negative, and at most the tokens.
        let expected = (share * tokens as f64).round() as u64;
        self.expected.fetch_add(expected, Relaxed);
    }

    /// A request whose engine has reported.
    pub(super) fn reported(&self, predicted: f64, actual: f64) {
        self.reported.fetch_add(1, Relaxed);
        // Neither is negative or more than a million.
        self.predicted
            .fetch_add((predicted * MILLION) as u64, Relaxed);
        self.actual.fetch_add((actual * MILLION) as u64, Relaxed);
    }

    /// An engine has counted so much more.
    pub(super) fn counted(&self, tokens: CacheTokens) {
        self.queried.fetch_add(tokens.queried, Relaxed);
        self.hit.fetch_add(tokens.hit, Relaxed);
    }

    /// Notes the sums, unless they were noted a moment ago.
    pub(super) fn note(&self, at: Duration) {
        let mut past = self.past.lock();
        if past.noted.is_some_and(|noted| at < noted + PERIOD) {
            return;
        }
        past.noted = Some(at);
        past.settled = past.latest;
        let now = self.totals();
        past.latest = now.scored;
        past.sums.note(at, now);
    }

    /// What came in the last `window`; `at` is the time since the start.
    pub(super) fn over(&self, window: Duration, at: Duration) -> Totals {
        let past = self.past.lock();
        let (now, then) = (self.totals(), past.sums.before(window, at));
        Totals {
            scored: now.scored.saturating_sub(then.scored),
            tokens: now.tokens.saturating_sub(then.tokens),
            expected: now.expected.saturating_sub(then.expected),
            reported: now.reported.saturating_sub(then.reported),
            predicted: now.predicted.saturating_sub(then.predicted),
            actual: now.actual.saturating_sub(then.actual),
            queried: now.queried.saturating_sub(then.queried),
            hit: now.hit.saturating_sub(then.hit),
            settled: past.settled.saturating_sub(then.scored),
        }
    }

    fn totals(&self) -> Totals {
        let read = |sum: &AtomicU64| sum.load(Relaxed);
        Totals {
            scored: read(&self.scored),
            tokens: read(&self.tokens),
            expected: read(&self.expected),
            reported: read(&self.reported),
            predicted: read(&self.predicted),
            actual: read(&self.actual),
            queried: read(&self.queried),
            hit: read(&self.hit),
            settled: 0,
        }
    }
}

impl Totals {
    /// Requests, and the mean shares that were predicted and reported.
    pub(super) fn reports(&self) -> Option<(u64, f64, f64)> {
        let mean = |sum: u64| sum as f64 / MILLION / self.reported as f64;
        (self.reported > 0).then(|| (self.reported, mean(self.predicted), mean(self.actual)))
    }

    /// Requests, and the shares of all their tokens that were predicted and counted. An engine with its prefix caching off
    /// has the counters and never looks up anything.
    pub(super) fn counters(&self) -> Option<(u64, f64, f64)> {
        let actual = match self.queried {
            0 if self.settled > 0 => 0.0,
            0 => return None,
            queried => self.hit as f64 / queried as f64,
        };
        let predicted = self.expected as f64 / self.tokens as f64;
        (self.tokens > 0).then_some((self.scored, predicted, actual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const WINDOW: Duration = s(900);

    #[test]
    fn what_was_put_right_shows() {
        let sums = Sums::default();
        (0..100).for_each(|_| sums.reported(1.0, 0.0));
        sums.note(s(20));
        (0..100).for_each(|_| sums.reported(1.0, 1.0));
        assert_eq!(sums.over(WINDOW, s(600)).reports(), Some((200, 1.0, 0.5)));
        assert_eq!(sums.over(WINDOW, s(1000)).reports(), Some((100, 1.0, 1.0)));
        sums.note(s(1000));
        assert_eq!(sums.over(WINDOW, s(2000)).reports(), None);
    }

    #[test]
    fn counters_are_compared_by_tokens() {
        let sums = Sums::default();
        for _ in 0..10 {
            sums.scored(1.0, 2000);
            sums.scored(0.0, 20);
        }
        assert_eq!(sums.over(WINDOW, s(1)).counters(), None, "not read yet");
        sums.counted(CacheTokens {
            queried: 20_200,
            hit: 20_000,
        });
        let (requests, predicted, actual) = sums.over(WINDOW, s(1)).counters().unwrap();
        assert_eq!(requests, 20);
        assert!((predicted - actual).abs() < 1e-9, "{predicted} {actual}");
    }

    #[test]
    fn an_engine_that_never_looks_up_anything_has_nothing_cached() {
        let sums = Sums::default();
        let seen = |at| sums.over(WINDOW, s(at)).counters();
        (0..30).for_each(|_| sums.scored(0.5, 100));
        sums.note(s(1));
        sums.note(s(2));
        assert_eq!(seen(2), None, "it may not have been read since");
        sums.note(s(17));
        assert_eq!(seen(17), Some((30, 0.5, 0.0)));
    }
}
