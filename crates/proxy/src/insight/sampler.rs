//! Which requests are looked at closely.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Requests of one second that are sampled at most. What a sample costs, some ten microseconds for a long prompt, is then
/// less than a thousandth of one core.
const PER_SECOND: u32 = 50;

/// The first requests of each second. One relaxed load when that is over.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// A second, in the upper half, and how many were admitted in it.
    state: AtomicU64,
}

impl Sampler {
    /// Whether a request of this second, counted from the start, is sampled.
    pub(crate) fn admits(&self, second: u32) -> bool {
        let mut state = self.state.load(Relaxed);
        loop {
            // A second that others have left already counts as theirs.
            let (latest, admitted) = ((state >> 32) as u32, state as u32);
            let (second, admitted) = match second > latest {
                true => (second, 0),
                false => (latest, admitted),
            };
            if admitted >= PER_SECOND {
                return false;
            }
            let next = u64::from(second) << 32 | u64::from(admitted + 1);
            match self
                .state
                .compare_exchange_weak(state, next, Relaxed, Relaxed)
            {
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fifty_of_a_second() {
        let sampler = Sampler::default();
        let admitted = |second| (0..80).filter(|_| sampler.admits(second)).count();
        assert_eq!(admitted(0), 50);
        assert_eq!(admitted(3), 50);
        assert_eq!(admitted(2), 0, "late by a moment");
        assert_eq!(admitted(4), 50);
    }

    #[test]
    fn no_more_from_many_threads() {
        let sampler = Sampler::default();
        let count = || (0..1000).filter(|_| sampler.admits(7)).count();
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(total, 50);
    }
}
