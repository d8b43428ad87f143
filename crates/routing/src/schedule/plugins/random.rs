//! random: spreads requests blindly.

use crate::schedule::config::no_args;
use crate::schedule::{Ask, Plugin, Row, Score, ScorePlugin, Verdict};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "random",
    about: "Gives every pod a score by chance; cannot be combined with other Score plugins",
    args: &[],
    read: no_args,
    filter: None,
    score: Some(|_| Box::new(Random)),
};

/// Makes the scores independent of the order among equal totals, which is by the same random bits.
const OTHER_BITS: u64 = 0x5851_F42D_4C95_7F2D;

#[derive(Debug)]
struct Random;

impl ScorePlugin for Random {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    /// Uniform in 0..=100.
    fn score(&self, ask: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        for (row, out) in rows.iter().zip(out) {
            *out = Score::new(row.pod.id.rank(ask.draw ^ OTHER_BITS) % 101);
        }
        Verdict::Scored
    }
}
