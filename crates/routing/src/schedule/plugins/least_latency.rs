//! least-latency: prefers pods that answered fast of late.

use crate::schedule::config::Args;
use crate::schedule::{Arg, Ask, ConfigError, Plugin, Row, Score, ScorePlugin, Verdict};
use serde_json::Value;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "least-latency",
    about: "Scores by recent time to first token (TTFT) and time per output token (TPOT)",
    args: &[Arg {
        name: FACTOR,
        default: "0.5",
        about: "Share of TTFT against TPOT, 0..=1: 1 is TTFT only, 0 is TPOT only",
    }],
    read: |plugin, value, settings, warnings| {
        if !value.is_object() {
            return Err(ConfigError::LeastLatency {
                path: FACTOR.into(),
                got: written(value),
            });
        }
        let args = Args::new(plugin, value, warnings);
        settings.least_latency = match args.get(FACTOR) {
            None => LeastLatencyArgs::default(),
            Some(value) => LeastLatencyArgs {
                ttft_weight: factor(value)?,
            },
        };
        Ok(())
    },
    filter: None,
    score: Some(|settings| Box::new(LeastLatency(settings.least_latency))),
};

const FACTOR: &str = "TTFTTPOTWeightFactor";

/// Arguments of least-latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastLatencyArgs {
    /// Share of TTFT, 0..=1; TPOT has the rest.
    pub ttft_weight: f64,
}

impl Default for LeastLatencyArgs {
    fn default() -> Self {
        Self { ttft_weight: 0.5 }
    }
}

fn factor(value: &Value) -> Result<f64, ConfigError> {
    let factor = value.as_f64().filter(|factor| (0.0..=1.0).contains(factor));
    factor.ok_or_else(|| ConfigError::LeastLatency {
        path: FACTOR.into(),
        got: written(value),
    })
}

/// A value as the error names it. JSON has no NaN and no infinity, so a reader of YAML may hand them on as text; null
/// is what some make of NaN, and it is no number anyway.
fn written(value: &Value) -> String {
    let Value::String(text) = value else {
        return value.to_string();
    };
    match text.trim_start_matches('+').to_ascii_lowercase().as_str() {
        ".nan" | "nan" => "NaN".into(),
        ".inf" | "inf" | "infinity" => "+Inf".into(),
        "-.inf" | "-inf" | "-infinity" => "-Inf".into(),
        _ => value.to_string(),
    }
}

#[derive(Debug)]
struct LeastLatency(LeastLatencyArgs);

impl ScorePlugin for LeastLatency {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    /// For TTFT and TPOT each `(greatest − own) / (greatest − least) × 100`, 100 when all are equal; then their mean by
    /// weight, truncated. Pods of which one of them is not known score 50 and do not count for greatest and least.
    fn score(&self, _: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        let (mut ttfts, mut tpots) = (Range::NONE, Range::NONE);
        for (ttft, tpot) in rows.iter().filter_map(latencies) {
            ttfts.include(ttft);
            tpots.include(tpot);
        }
        let weight = self.0.ttft_weight;
        for (row, out) in rows.iter().zip(out) {
            *out = latencies(row).map_or(Score::UNKNOWN, |(ttft, tpot)| {
                Score::truncated(ttfts.score(ttft) * weight + tpots.score(tpot) * (1.0 - weight))
            });
        }
        Verdict::Scored
    }
}

/// TTFT and TPOT in seconds, if both are known.
fn latencies(row: &Row<'_>) -> Option<(f64, f64)> {
    let gauges = row.gauges?;
    let known = |seconds: f32| (seconds.is_finite() && seconds > 0.0).then_some(f64::from(seconds));
    known(gauges.ttft).zip(known(gauges.tpot))
}

struct Range {
    least: f64,
    greatest: f64,
}

impl Range {
    const NONE: Self = Self {
        least: f64::INFINITY,
        greatest: 0.0,
    };

    fn include(&mut self, value: f64) {
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    fn score(&self, value: f64) -> f64 {
        if self.greatest > self.least {
            100.0 * (self.greatest - value) / (self.greatest - self.least)
        } else {
            100.0
        }
    }
}
