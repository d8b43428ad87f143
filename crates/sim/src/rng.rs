//! A small seeded generator, so that a run can be repeated.
//!
//! SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): one addition and three
//! mixing steps. Not for secrets.

/// A seeded source of random numbers; equal seeds give equal sequences on every platform.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for `label`: what one user draws does not depend on how much the others drew before.
    #[must_use]
    pub fn fork(&self, label: u64) -> Self {
        let mut mixed = Self(self.0 ^ label.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Self(mixed.next_u64())
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0. The bias of the multiplication is below n / 2^32.
    pub fn below(&mut self, n: usize) -> usize {
        let wide = u128::from(self.next_u64()) * n as u128;
        (wide >> 64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// An exponentially distributed waiting time with this mean (same unit as `mean`).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn equal_seeds_give_equal_sequences_and_forks_differ() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert_eq!(
            (0..9).map(|_| a.next_u64()).collect::<Vec<_>>(),
            (0..9).map(|_| b.next_u64()).collect::<Vec<_>>()
        );
        let root = Rng::new(7);
        assert_ne!(root.fork(1).next_u64(), root.fork(2).next_u64());
    }

    #[test]
    fn first_value_of_the_published_algorithm() {
        // Reference value of SplitMix64 for seed 0.
        assert_eq!(Rng::new(0).next_u64(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn ranges_and_means() {
        let mut rng = Rng::new(3);
        let mut seen = [0_u32; 5];
        for _ in 0..5_000 {
            seen[rng.below(5)] += 1;
            assert!((4..=6).contains(&rng.between(4, 6)));
        }
        assert!(seen.iter().all(|n| (850..1_150).contains(n)), "{seen:?}");
        let mean = (0..20_000).map(|_| rng.exponential(2.0)).sum::<f64>() / 20_000.0;
        assert!((1.95..2.05).contains(&mean), "{mean}");
        assert_eq!(rng.below(0), 0);
    }
}
