//! What a replay measured.

use crate::report::Summary;
use serde_json::{Value, json};

/// The outcome of one replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was replayed with: the name of the configuration.
    pub name: String,
    /// The figures.
    pub summary: Summary,
    /// Prompt tokens that the engines looked up in their caches, as vLLM counts `prefix_cache_queries`.
    pub prefix_queries: u64,
    /// Of these, found, as vLLM counts `prefix_cache_hits`.
    pub prefix_hits: u64,
    /// Times that a sequence lost its blocks to another.
    pub preemptions: u64,
    /// Blocks that the engines dropped from their caches.
    pub block_evictions: u64,
    /// From the first request to the end of the last answer, in seconds of the trace.
    pub seconds: f64,
    /// Curves.
    pub series: Series,
}

/// Curves of one replay. A point is `None` where nothing happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Seconds between two points over time.
    pub step: f64,
    /// Requests that each pod has, on average, over time.
    pub load: Vec<Vec<Option<f64>>>,
    /// Share of prompt tokens found in a cache, 0..=1, by time of arrival.
    pub cached: Vec<Option<f64>>,
    /// Share of prompt tokens that the router expected there, 0..=1, by time of arrival. Empty, as `calibration` is, where nobody
    /// expects anything.
    pub predicted: Vec<Option<f64>>,
    /// Seconds to the first token: percentiles 0 to 100.
    pub ttft: Vec<f64>,
    /// Predicted against actual share, in classes of the predicted one.
    pub calibration: Vec<Point>,
}

/// Requests of one class of predicted shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Their predicted share of cached prompt tokens, 0..=1.
    pub predicted: f64,
    /// Their actual one.
    pub actual: f64,
    /// How many.
    pub requests: u64,
}

impl Outcome {
    /// Everything, for a program. Times are seconds, shares 0..=1.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut value = self.summary.json();
        if let Value::Object(members) = &mut value {
            members.shift_insert(0, "name".into(), json!(self.name));
            members.insert(
                "engines".into(),
                json!({
                    "prefix_cache_queries": self.prefix_queries,
                    "prefix_cache_hits": self.prefix_hits,
                    "preemptions": self.preemptions,
                    "block_evictions": self.block_evictions,
                }),
            );
            members.insert("seconds".into(), json!(self.seconds));
            members.insert("series".into(), self.series.json());
        }
        value
    }
}

impl Series {
    fn json(&self) -> Value {
        let points = |point: &Point| json!([point.predicted, point.actual, point.requests]);
        json!({
            "step": self.step,
            "load": self.load,
            "cached": self.cached,
            "predicted": self.predicted,
            "ttft_percentiles": self.ttft,
            "predicted_actual_requests": self.calibration.iter().map(points).collect::<Vec<_>>(),
        })
    }
}
