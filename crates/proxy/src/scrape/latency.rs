//! Mean latency since the last scrape, from a histogram's running sum and count.

/// Follows one histogram of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    before: Option<(f64, f64)>,
    /// Seconds; 0 while unknown.
    mean: f64,
}

impl Latency {
    /// Takes the sum (seconds) and count of a page; returns the mean to go by, in seconds.
    ///
    /// The mean covers the samples since the last page. The first page tells nothing, since its samples may be hours
    /// old. A sum or count that went down is an engine that restarted: all its samples are new. Without new samples the
    /// last mean stays.
    pub(super) fn update(&mut self, (sum, count): (f64, f64)) -> f64 {
        let (sum_before, count_before) = self.before.replace((sum, count)).unwrap_or((sum, count));
        let (sum, count) = if sum < sum_before || count < count_before {
            (sum, count)
        } else {
            (sum - sum_before, count - count_before)
        };
        if count > 0.0 && sum > 0.0 {
            self.mean = sum / count;
        }
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j1_mean_over_the_samples_since_the_last_scrape() {
        let mut latency = Latency::default();
        assert_eq!(
            latency.update((100.0, 50.0)),
            0.0,
            "the first page tells nothing"
        );
        assert_eq!(latency.update((103.0, 56.0)), 0.5);
        assert_eq!(
            latency.update((103.0, 56.0)),
            0.5,
            "no new samples: the last mean stays"
        );
        assert_eq!(latency.update((1.0, 4.0)), 0.25, "the engine restarted");
        assert_eq!(
            latency.update((0.0, 0.0)),
            0.25,
            "restarted again, and idle"
        );
    }
}
