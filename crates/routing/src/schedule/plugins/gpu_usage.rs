//! gpu-usage: prefers pods whose KV cache has room.

use crate::schedule::config::no_args;
use crate::schedule::{Ask, Plugin, Row, Score, ScorePlugin, Verdict};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "gpu-usage",
    about: "Scores by the free share of the engine's KV cache",
    args: &[],
    read: no_args,
    filter: None,
    score: Some(|_| Box::new(GpuUsage)),
};

/// Steps of one percent into which a reading is rounded before its fraction is cut off. Readings are single precision
/// (about 7 digits): a usage of 0.3 is read as 0.30000001 and must score 70, not 69.
const STEPS: f64 = 1000.0;

#[derive(Debug)]
struct GpuUsage;

impl ScorePlugin for GpuUsage {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    /// `(1 - usage) × 100`, truncated; 50 for an unknown pod.
    fn score(&self, _: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        for (row, out) in rows.iter().zip(out) {
            let usage = row
                .gauges
                .map(|g| f64::from(g.kv_usage))
                .filter(|usage| usage.is_finite());
            *out = usage.map_or(Score::UNKNOWN, |u| {
                Score::truncated(((1.0 - u) * 100.0 * STEPS).round() / STEPS)
            });
        }
        Verdict::Scored
    }
}
