//! What a Score plugin says about a pod.

/// Sum over all plugins of score × weight. Wide enough for any weights of the configuration.
pub type Total = u128;

/// 0 (worst) to 100 (best).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(u8);

impl Score {
    /// The worst score.
    pub const MIN: Self = Self(0);
    /// What a pod gets about which nothing is known.
    pub const UNKNOWN: Self = Self(50);
    /// The best score.
    pub const MAX: Self = Self(100);
    /// What the scheduler puts into a slot before a plugin runs. No constructor gives it, so what is left of it afterwards
    /// was not written.
    pub(super) const UNWRITTEN: Self = Self(u8::MAX);

    /// A score; more than 100 counts as 100.
    #[must_use]
    pub fn new(score: u64) -> Self {
        Self(score.min(100) as u8)
    }

    /// A score with its fraction cut off; below 0 and NaN count as 0, above 100 as 100.
    #[must_use]
    pub fn truncated(score: f64) -> Self {
        // Casts from floating point saturate, and NaN becomes 0.
        Self::new(score as u64)
    }

    /// `part / whole` of 100, rounded down; 0 of 0 is 0.
    #[must_use]
    pub fn ratio(part: u64, whole: u64) -> Self {
        let percent = (u128::from(part) * 100)
            .checked_div(u128::from(whole))
            .unwrap_or(0);
        Self(percent.min(100) as u8)
    }

    /// 0..=100.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}
