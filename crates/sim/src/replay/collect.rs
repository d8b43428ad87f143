//! Keeps what happens to each request, and sums it up at the end.

use super::outcome::{Outcome, Point, Series};
use crate::report::{Latencies, Summary, percent};
use std::time::Duration;

/// Points of a curve over time.
const BUCKETS: usize = 120;
/// Points of the distribution of TTFT: its percentiles 0 to 100.
const PERCENTILES: usize = 101;
/// Classes of the predicted share, for predicted against actual.
const CLASSES: usize = 10;
/// Readings of the pods' loads that are kept. When there are so many, every other one goes, and from then on every other one
/// comes: still 32 or more for each point of a curve.
const READINGS: usize = 64 * BUCKETS;

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// When it arrived, seconds.
    pub(super) at: f64,
    /// Seconds to the first token.
    pub(super) ttft: f64,
    /// Seconds to the end.
    pub(super) total: f64,
    /// Seconds in the engine's queue.
    pub(super) queue: f64,
    /// The engine's number.
    pub(super) engine: usize,
    pub(super) prompt_tokens: usize,
    pub(super) cached_tokens: usize,
    pub(super) predicted_tokens: usize,
    pub(super) completion_tokens: usize,
}

/// What a replay has seen so far.
#[derive(Debug, Default)]
pub(super) struct Collect {
    answered: Vec<Answered>,
    failed: u64,
    /// Requests that have ended and are not counted.
    uncounted: u64,
    evictions: u64,
    /// Requests that each pod has, at every scrape of so many: the time, and a figure for each pod.
    loads: Vec<(f64, Vec<usize>)>,
    scrapes: Thinned,
}

/// Which of ever more readings are kept.
#[derive(Debug, Default)]
struct Thinned {
    seen: u64,
    /// One in 2 to the power of this.
    halvings: u32,
}

impl Thinned {
    fn keeps_next(&mut self) -> bool {
        let keeps = self.seen.is_multiple_of(1 << self.halvings);
        self.seen += 1;
        keeps
    }
}

/// What the engines and indexes hold at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// None where no router has an index.
    pub(super) entries: Option<u64>,
    /// Whether anything was expected of the pods' caches.
    pub(super) predicts: bool,
    pub(super) pods: usize,
    pub(super) prefix_queries: u64,
    pub(super) prefix_hits: u64,
    pub(super) preemptions: u64,
    pub(super) block_evictions: u64,
    /// When the last answer ended, seconds.
    pub(super) end: f64,
}

impl Collect {
    pub(super) fn answered(&mut self, request: Answered) {
        self.answered.push(request);
    }

    pub(super) fn failed(&mut self) {
        self.failed += 1;
    }

    /// A request has ended that only warms the caches.
    pub(super) fn uncounted(&mut self) {
        self.uncounted += 1;
    }

    pub(super) fn evicted(&mut self, entries: usize) {
        self.evictions += entries as u64;
    }

    pub(super) fn loads(&mut self, at: f64, pods: impl Iterator<Item = usize>) {
        if !self.scrapes.keeps_next() {
            return;
        }
        self.loads.push((at, pods.collect()));
        if self.loads.len() == READINGS {
            let mut index = 0;
            self.loads.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.scrapes.halvings += 1;
        }
    }

    /// Requests that have ended, well or not.
    pub(super) fn ended(&self) -> u64 {
        self.answered.len() as u64 + self.failed + self.uncounted
    }

    pub(super) fn finish(self, name: String, rest: Rest) -> Outcome {
        let series = self.series(&rest);
        let sum =
            |part: fn(&Answered) -> usize| self.answered.iter().map(part).sum::<usize>() as u64;
        let times = |part: fn(&Answered) -> f64| {
            let all = self.answered.iter().map(part);
            Latencies::of(all.map(|s| Duration::from_secs_f64(s.max(0.0))).collect())
        };
        let mut shares = vec![0_u64; rest.pods];
        for request in &self.answered {
            shares[request.engine] += 1;
        }
        let busiest = shares.iter().copied().max().unwrap_or(0);
        Outcome {
            name,
            summary: Summary {
                requests: self.answered.len() as u64 + self.failed,
                failed: self.failed,
                prompt_tokens: sum(|r| r.prompt_tokens),
                cached_tokens: sum(|r| r.cached_tokens),
                predicted_tokens: rest.predicts.then(|| sum(|r| r.predicted_tokens)),
                completion_tokens: sum(|r| r.completion_tokens),
                ttft: times(|r| r.ttft),
                total: times(|r| r.total),
                queue: Some(times(|r| r.queue)),
                busiest: percent(busiest, self.answered.len() as u64),
                pods: rest.pods,
                evictions: rest.entries.map(|_| self.evictions),
                entries: rest.entries,
            },
            prefix_queries: rest.prefix_queries,
            prefix_hits: rest.prefix_hits,
            preemptions: rest.preemptions,
            block_evictions: rest.block_evictions,
            seconds: rest.end,
            series,
        }
    }

    fn series(&self, rest: &Rest) -> Series {
        let pods = rest.pods;
        let step = (rest.end / BUCKETS as f64).max(f64::MIN_POSITIVE);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let bucket = |at: f64| ((at / step) as usize).min(BUCKETS - 1);

        let mut load = vec![vec![Mean::default(); BUCKETS]; pods];
        for (at, pods) in &self.loads {
            for (pod, requests) in pods.iter().enumerate() {
                load[pod][bucket(*at)].add(*requests as f64, 1.0);
            }
        }
        let mut cached = vec![Mean::default(); BUCKETS];
        let mut predicted = vec![Mean::default(); BUCKETS];
        let mut classes = vec![(Mean::default(), Mean::default(), 0); CLASSES];
        for request in &self.answered {
            let tokens = request.prompt_tokens as f64;
            let at = bucket(request.at);
            cached[at].add(request.cached_tokens as f64, tokens);
            predicted[at].add(request.predicted_tokens as f64, tokens);
            let class = request.predicted_tokens * CLASSES / request.prompt_tokens.max(1);
            let (predicted, actual, count) = &mut classes[class.min(CLASSES - 1)];
            predicted.add(request.predicted_tokens as f64, tokens);
            actual.add(request.cached_tokens as f64, tokens);
            *count += 1;
        }
        let mut ttft: Vec<f64> = self.answered.iter().map(|r| r.ttft).collect();
        ttft.sort_unstable_by(f64::total_cmp);
        let rank = |p: usize| p * ttft.len().saturating_sub(1) / (PERCENTILES - 1);
        Series {
            step,
            load: load
                .iter()
                .map(|pod| pod.iter().map(Mean::value).collect())
                .collect(),
            cached: cached.iter().map(Mean::value).collect(),
            predicted: match rest.predicts {
                true => predicted.iter().map(Mean::value).collect(),
                false => Vec::new(),
            },
            ttft: (0..PERCENTILES)
                .filter_map(|p| ttft.get(rank(p)).copied())
                .collect(),
            calibration: classes
                .iter()
                .filter(|_| rest.predicts)
                .filter_map(|(predicted, actual, requests)| {
                    Some(Point {
                        predicted: predicted.value()?,
                        actual: actual.value()?,
                        requests: *requests,
                    })
                })
                .collect(),
        }
    }
}

/// A weighted mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, part: f64, weight: f64) {
        self.sum += part;
        self.weight += weight;
    }

    fn value(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}
