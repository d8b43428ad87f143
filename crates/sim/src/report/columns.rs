//! The figures of one run, and how they are written.

use super::{Latencies, percent};
use crate::load;
use serde_json::{Value, json};
use std::time::Duration;

/// The figures of one run. What a kind of run cannot know is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Requests in all.
    pub requests: u64,
    /// Of these, without a whole answer.
    pub failed: u64,
    /// Prompt tokens of the answered requests.
    pub prompt_tokens: u64,
    /// Of these, found in an engine's cache.
    pub cached_tokens: u64,
    /// Of these, expected in the cache by the router when it chose the pod.
    pub predicted_tokens: Option<u64>,
    /// Tokens answered.
    pub completion_tokens: u64,
    /// Arrival to first token.
    pub ttft: Latencies,
    /// Arrival to the end of the answer.
    pub total: Latencies,
    /// Time in an engine's waiting queue.
    pub queue: Option<Latencies>,
    /// The busiest pod's share of requests, in percent.
    pub busiest: f64,
    /// Pods that took part.
    pub pods: usize,
    /// Entries that the prefix index dropped because a pod's list was full.
    pub evictions: Option<u64>,
    /// Entries of the prefix index at the end.
    pub entries: Option<u64>,
}

/// A figure of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// All requests.
    Requests,
    /// Those without a whole answer.
    Failed,
    /// Share of prompt tokens found in a cache.
    Cached,
    /// Share of prompt tokens that the router expected in the cache.
    Predicted,
    /// Mean time to first token.
    TtftMean,
    /// Its median.
    TtftP50,
    /// Its 90th percentile.
    TtftP90,
    /// Its 99th percentile.
    TtftP99,
    /// Mean time of a request.
    TotalMean,
    /// Mean time in an engine's queue.
    Queue,
    /// The busiest pod's share of requests.
    Busiest,
    /// The number of pods times the busiest pod's share: 1 is even.
    Hotspot,
    /// Dropped entries of the prefix index.
    Evictions,
    /// Entries of the prefix index.
    Entries,
}

impl Column {
    /// The columns of a live run.
    pub const LIVE: [Self; 7] = [
        Self::Requests,
        Self::Failed,
        Self::Cached,
        Self::TtftMean,
        Self::TtftP50,
        Self::TtftP99,
        Self::Busiest,
    ];

    /// The columns of a replay.
    pub const REPLAY: [Self; 13] = [
        Self::Requests,
        Self::Failed,
        Self::Cached,
        Self::Predicted,
        Self::TtftMean,
        Self::TtftP50,
        Self::TtftP90,
        Self::TtftP99,
        Self::TotalMean,
        Self::Queue,
        Self::Hotspot,
        Self::Evictions,
        Self::Entries,
    ];

    /// The column's heading. Percentiles stand behind the mean that says what they are of.
    #[must_use]
    pub fn heading(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Failed => "failed",
            Self::Cached => "cached tokens",
            Self::Predicted => "predicted",
            Self::TtftMean => "TTFT mean",
            Self::TtftP50 => "p50",
            Self::TtftP90 => "p90",
            Self::TtftP99 => "p99",
            Self::TotalMean => "latency",
            Self::Queue => "queue",
            Self::Busiest => "busiest pod",
            Self::Hotspot => "hotspot",
            Self::Evictions => "evictions",
            Self::Entries => "entries",
        }
    }

    /// The figure with its unit; a dash where the run cannot know it.
    #[must_use]
    pub fn cell(self, run: &Summary) -> String {
        let count = |value: Option<u64>| value.map_or_else(|| "–".into(), |n| n.to_string());
        match self {
            Self::Requests => run.requests.to_string(),
            Self::Failed => run.failed.to_string(),
            Self::Cached => format!("{:.1} %", run.cached_percent()),
            Self::Predicted => run
                .predicted_percent()
                .map_or_else(|| "–".into(), |share| format!("{share:.1} %")),
            Self::TtftMean => time(run.ttft.mean),
            Self::TtftP50 => time(run.ttft.p50),
            Self::TtftP90 => time(run.ttft.p90),
            Self::TtftP99 => time(run.ttft.p99),
            Self::TotalMean => time(run.total.mean),
            Self::Queue => run
                .queue
                .map_or_else(|| "–".into(), |queue| time(queue.mean)),
            Self::Busiest => format!("{:.0} %", run.busiest),
            Self::Hotspot => format!("{:.2}", run.hotspot()),
            Self::Evictions => count(run.evictions),
            Self::Entries => count(run.entries),
        }
    }
}

/// Milliseconds below ten seconds, seconds above.
fn time(time: Duration) -> String {
    match time {
        _ if time < Duration::from_secs(10) => format!("{} ms", time.as_millis()),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

impl Summary {
    /// Share of prompt tokens that were found in a cache, in percent.
    #[must_use]
    pub fn cached_percent(&self) -> f64 {
        percent(self.cached_tokens, self.prompt_tokens)
    }

    /// Share of prompt tokens that the router expected in the cache, in percent.
    #[must_use]
    pub fn predicted_percent(&self) -> Option<f64> {
        let predicted = self.predicted_tokens?;
        Some(percent(predicted, self.prompt_tokens))
    }

    /// The number of pods times the busiest pod's share of requests: 1 is even, the number of pods is all on one.
    #[must_use]
    pub fn hotspot(&self) -> f64 {
        self.pods as f64 * self.busiest / 100.0
    }

    /// Everything, for a program. Times are seconds, shares 0..=1.
    #[must_use]
    pub fn json(&self) -> Value {
        let share = |part: u64| percent(part, self.prompt_tokens) / 100.0;
        json!({
            "requests": self.requests,
            "failed": self.failed,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "cached_share": share(self.cached_tokens),
            "predicted_tokens": self.predicted_tokens,
            "predicted_share": self.predicted_tokens.map(share),
            "completion_tokens": self.completion_tokens,
            "ttft": latencies(&self.ttft),
            "latency": latencies(&self.total),
            "queue": self.queue.as_ref().map(latencies),
            "pods": self.pods,
            "busiest_share": self.busiest / 100.0,
            "hotspot": self.hotspot(),
            "evictions": self.evictions,
            "entries": self.entries,
        })
    }
}

fn latencies(of: &Latencies) -> Value {
    json!({
        "mean": of.mean.as_secs_f64(),
        "p50": of.p50.as_secs_f64(),
        "p90": of.p90.as_secs_f64(),
        "p99": of.p99.as_secs_f64(),
        "max": of.max.as_secs_f64(),
    })
}

impl From<&load::Report> for Summary {
    fn from(report: &load::Report) -> Self {
        let shares = report.pods.iter().map(|pod| pod.request_percent);
        Self {
            requests: report.requests,
            failed: report.errors,
            prompt_tokens: report.prompt_tokens,
            cached_tokens: report.cached_tokens,
            completion_tokens: report.completion_tokens,
            ttft: report.ttft,
            total: report.total,
            busiest: shares.fold(0.0, f64::max),
            pods: report.pods.len(),
            ..Self::default()
        }
    }
}
