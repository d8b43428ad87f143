//! A Prometheus histogram with the buckets of the engine it stands for.

/// Counts by upper bound, and the sum.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: Vec<f64>,
    /// One more than `bounds`: the last counts what exceeds them all.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: impl Into<Vec<f64>>) -> Self {
        let bounds = bounds.into();
        Self {
            counts: vec![0; bounds.len() + 1],
            bounds,
            sum: 0.0,
        }
    }

    pub(super) fn observe(&mut self, value: f64) {
        let at = self.bounds.partition_point(|&bound| bound < value);
        self.counts[at] += 1;
        self.sum += value;
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bounds with the number of observations at or below each; infinity last.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        }))
    }
}

/// 1, 2, 5, 10, 20, 50 ... up to `most`: the bounds of vLLM's histograms of tokens.
pub(super) fn one_two_five(most: usize) -> Vec<f64> {
    let decades = (0..).map(|exponent| 10_f64.powi(exponent));
    let bounds = decades.flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade]);
    bounds.take_while(|&bound| bound <= most as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::{Histogram, one_two_five};

    #[test]
    fn a_value_on_a_bound_counts_below_it() {
        let mut histogram = Histogram::new([1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(value);
        }
        let cumulative: Vec<_> = histogram.cumulative().collect();
        assert_eq!(cumulative, [(1.0, 2), (2.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.count(), histogram.sum()), (4, 12.0));
    }

    #[test]
    fn bounds_end_at_the_window() {
        assert_eq!(one_two_five(50), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
    }
}
