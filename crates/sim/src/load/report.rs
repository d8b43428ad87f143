//! What a run measured.

use std::time::Duration;

use super::{client::Reply, scrape::EngineSums};
use crate::report::{Latencies, percent};

/// The result of one run, measured by the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Requests sent.
    pub requests: u64,
    /// Of these, without a whole answer.
    pub errors: u64,
    /// What the first error said.
    pub first_error: Option<String>,
    /// Prompt tokens of the answered requests.
    pub prompt_tokens: u64,
    /// Of these, found in a prefix cache.
    pub cached_tokens: u64,
    /// Tokens answered.
    pub completion_tokens: u64,
    /// Request sent to first token read.
    pub ttft: Latencies,
    /// The longest time between two pieces of text, of each answer.
    pub pause: Latencies,
    /// Request sent to the end of the answer.
    pub total: Latencies,
    /// Pods that a conversation was given to, on average; 0 where the router does not name them.
    pub pods_per_chat: f64,
    /// Start to the end of the last answer.
    pub elapsed: Duration,
    /// Each engine's part, in the order of [`super::Scenario::engines`].
    pub pods: Vec<PodShare>,
}

impl Report {
    /// Share of prompt tokens that were found in a cache, in percent.
    #[must_use]
    pub fn cached_percent(&self) -> f64 {
        percent(self.cached_tokens, self.prompt_tokens)
    }

    pub(super) fn new(replies: &[Reply], errors: &[String], elapsed: Duration) -> Self {
        let sum = |part: fn(&Reply) -> u64| replies.iter().map(part).sum();
        Self {
            requests: (replies.len() + errors.len()) as u64,
            errors: errors.len() as u64,
            first_error: errors.first().cloned(),
            prompt_tokens: sum(|reply| reply.prompt_tokens),
            cached_tokens: sum(|reply| reply.cached_tokens),
            completion_tokens: sum(|reply| reply.completion_tokens),
            ttft: Latencies::of(replies.iter().map(|reply| reply.first_token).collect()),
            pause: Latencies::of(replies.iter().map(|reply| reply.longest_pause).collect()),
            total: Latencies::of(replies.iter().map(|reply| reply.total).collect()),
            pods_per_chat: 0.0,
            elapsed,
            pods: Vec::new(),
        }
    }
}

/// One engine's part of a run, from its own counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodShare {
    /// `host:port`.
    pub engine: String,
    /// What the run added to its counters.
    pub sums: EngineSums,
    /// Its share of all engines' requests, in percent.
    pub request_percent: f64,
    /// Share of its prompt tokens that it found in its cache, in percent.
    pub cached_percent: f64,
}

impl PodShare {
    pub(super) fn all(engines: &[String], sums: &[EngineSums]) -> Vec<Self> {
        let total = sums.iter().map(|sums| sums.requests).sum();
        let share = |(engine, sums): (&String, &EngineSums)| Self {
            engine: engine.clone(),
            sums: *sums,
            request_percent: percent(sums.requests, total),
            cached_percent: percent(sums.prefix_hits, sums.prefix_queries),
        };
        engines.iter().zip(sums).map(share).collect()
    }
}
