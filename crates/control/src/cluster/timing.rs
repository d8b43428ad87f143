//! How long the cluster source waits, for what.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// Periods and limits; the defaults are for real clusters, tests shorten them.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Longest wait for a page of a list, or for the answer to a written status.
    pub answer: Duration,
    /// A watch is replaced by a fresh list after this time, give or take a tenth, so that many routers do not list at
    /// once. It bounds how long a lost event can go unnoticed.
    pub relist: Duration,
    /// Pause after the first failure; it doubles with each further one. The pauses are drawn between a half and all of
    /// it, so that many routers do not come back at once.
    pub first_pause: Duration,
    /// Longest pause between two tries.
    pub longest_pause: Duration,
    /// Changes are published when there was no further one for so long …
    pub quiet: Duration,
    /// … and after this time at the latest.
    pub gather: Duration,
    /// Shortest time between two written statuses of one object.
    pub status_each: Duration,
    /// Shortest time between two written statuses.
    pub status_any: Duration,
    /// What somebody else wrote into a status stays for a half to all of this time.
    pub status_again: Duration,
    /// Pause of all statuses of a kind after the API server refused one, and the longest pause of one that fails.
    pub status_refused: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(30),
            relist: Duration::from_secs(300),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
            quiet: Duration::from_millis(50),
            gather: Duration::from_millis(500),
            status_each: Duration::from_secs(5),
            status_any: Duration::from_millis(100),
            status_again: Duration::from_secs(120),
            status_refused: Duration::from_secs(600),
        }
    }
}

/// Pauses between tries.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl Backoff {
    pub(super) fn new(timing: &Timing) -> Self {
        Self::between(timing.first_pause, timing.longest_pause)
    }

    pub(super) fn between(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            first,
            longest,
        }
    }

    /// After a success.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause after one more failure.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = (pause * 2).min(self.longest);
        spread(pause, 0.5, 1.0)
    }
}

/// The time, multiplied by a factor drawn from the range.
pub(super) fn spread(time: Duration, from: f64, to: f64) -> Duration {
    // A hasher's random keys are all the randomness that is needed here.
    let draw = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
    time.mul_f64(from + (to - from) * f64::from(draw) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(&Timing::default());
        for whole in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            let whole = Duration::from_millis(whole);
            let pause = backoff.pause();
            assert!(
                whole / 2 <= pause && pause <= whole,
                "{pause:?} of {whole:?}"
            );
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(500));
    }

    #[test]
    fn pauses_are_spread() {
        let second = Duration::from_secs(1);
        let drawn: Vec<_> = (0..64).map(|_| spread(second, 0.5, 1.0)).collect();
        assert!(drawn.iter().all(|d| (second / 2..=second).contains(d)));
        assert!(drawn.iter().any(|d| *d < second * 3 / 4));
        assert!(drawn.iter().any(|d| *d > second * 3 / 4));
    }
}
