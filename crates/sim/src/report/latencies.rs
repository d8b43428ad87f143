//! Times, summed up.

use std::time::Duration;

/// A set of latencies, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Arithmetic mean.
    pub mean: Duration,
    /// Half were at most this.
    pub p50: Duration,
    /// Nine in ten were at most this.
    pub p90: Duration,
    /// 99 in 100 were at most this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Latencies {
    /// Percentiles by nearest rank; all zero when there is nothing.
    #[must_use]
    pub fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let rank = |percent: usize| {
            let rank = (all.len() * percent).div_ceil(100).max(1);
            all.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            mean: all
                .iter()
                .sum::<Duration>()
                .checked_div(count)
                .unwrap_or_default(),
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: all.last().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latencies;

    #[test]
    fn percentiles_are_nearest_rank() {
        let latencies = Latencies::of((1..=200).rev().map(Duration::from_millis).collect());
        let millis =
            [latencies.p50, latencies.p90, latencies.p99, latencies.max].map(|at| at.as_millis());
        assert_eq!(millis, [100, 180, 198, 200]);
        assert_eq!(latencies.mean, Duration::from_micros(100_500));
        assert_eq!(Latencies::of(Vec::new()), Latencies::default());
    }
}
