//! What is known about a pod's load right now.

use crate::request::Api;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// One reading of an engine's metrics page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Requests in the engine's waiting queue.
    pub waiting: u32,
    /// Requests that the engine is running.
    pub running: u32,
    /// Share of the KV cache in use, 0..=1.
    pub kv_usage: f32,
    /// Mean time to first token of the latest samples, in seconds; 0 while there is none.
    pub ttft: f32,
    /// Mean time per output token of the latest samples, in seconds; 0 while there is none.
    pub tpot: f32,
}

/// Prompt tokens that an engine has looked up in its prefix cache, and those that it found, since the router first read
/// its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTokens {
    /// Looked up.
    pub queried: u64,
    /// Found.
    pub hit: u64,
}

impl CacheTokens {
    /// The share that was found; `None` when nothing was looked up.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.queried > 0).then(|| self.hit as f64 / self.queried as f64)
    }
}

/// Live figures of one pod: the router's own in-flight count, and what the last good scrape said.
///
/// The fields are independent atomics; a reader may see some of an older and some of a newer reading. That is
/// harmless: they are estimates that are a scrape interval old anyway.
#[derive(Debug, Default)]
pub struct Load {
    pub(super) in_flight: AtomicU32,
    known: AtomicBool,
    waiting: AtomicU32,
    running: AtomicU32,
    kv_usage: AtomicU32,
    ttft: AtomicU32,
    tpot: AtomicU32,
    /// Milliseconds since the process started, at the last good scrape; 0 while there was none.
    scraped_at_ms: AtomicU64,
    models: ArcSwap<Vec<Box<str>>>,
    /// Until when others are to be asked first, in milliseconds since the process started.
    behind_until_ms: AtomicU64,
    models_known: AtomicBool,
    /// Whether there are cache counters at all.
    counts_cache: AtomicBool,
    cache_queried: AtomicU64,
    cache_hit: AtomicU64,
    /// A bit for each API that has reported cached tokens.
    reports_cached: AtomicU32,
}

impl Load {
    /// Requests that this router has given to the pod and that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Stores a good reading. `at_ms` is the caller's time in milliseconds since the process started.
    pub fn publish(&self, gauges: &Gauges, at_ms: u64) {
        self.waiting.store(gauges.waiting, Relaxed);
        self.running.store(gauges.running, Relaxed);
        self.kv_usage.store(gauges.kv_usage.to_bits(), Relaxed);
        self.ttft.store(gauges.ttft.to_bits(), Relaxed);
        self.tpot.store(gauges.tpot.to_bits(), Relaxed);
        self.scraped_at_ms.store(at_ms.max(1), Relaxed);
        self.known.store(true, Relaxed);
    }

    /// Declares the last reading too old to be believed. The figures stay for the debug page.
    pub fn expire(&self) {
        self.known.store(false, Relaxed);
    }

    /// The last reading, or `None` when there never was one or it is too old: such a pod is unknown, not idle.
    #[must_use]
    pub fn known(&self) -> Option<Gauges> {
        self.known.load(Relaxed).then(|| self.last())
    }

    /// The last reading whatever its age, zeros when there never was one.
    #[must_use]
    pub fn last(&self) -> Gauges {
        Gauges {
            waiting: self.waiting.load(Relaxed),
            running: self.running.load(Relaxed),
            kv_usage: f32::from_bits(self.kv_usage.load(Relaxed)),
            ttft: f32::from_bits(self.ttft.load(Relaxed)),
            tpot: f32::from_bits(self.tpot.load(Relaxed)),
        }
    }

    /// Time of the last good scrape, in milliseconds since the process started.
    #[must_use]
    pub fn scraped_at_ms(&self) -> Option<u64> {
        Some(self.scraped_at_ms.load(Relaxed)).filter(|&t| t > 0)
    }

    /// Lets others be asked first until this time, in milliseconds since the process started: the pod did not take a
    /// connection.
    pub fn put_behind_until(&self, at_ms: u64) {
        self.behind_until_ms.fetch_max(at_ms, Relaxed);
    }

    /// Whether others are to be asked first at this time, in milliseconds since the process started.
    #[must_use]
    pub fn is_behind(&self, now_ms: u64) -> bool {
        now_ms < self.behind_until_ms.load(Relaxed)
    }

    /// What the engine's counters of its prefix cache have grown by; `None` for an engine that has none.
    #[must_use]
    pub fn cache_tokens(&self) -> Option<CacheTokens> {
        let tokens = || CacheTokens {
            queried: self.cache_queried.load(Relaxed),
            hit: self.cache_hit.load(Relaxed),
        };
        self.counts_cache.load(Relaxed).then(tokens)
    }

    /// Stores what the counters have grown by.
    pub fn set_cache_tokens(&self, tokens: CacheTokens) {
        self.cache_queried.store(tokens.queried, Relaxed);
        self.cache_hit.store(tokens.hit, Relaxed);
        self.counts_cache.store(true, Relaxed);
    }

    /// An answer of this API named its cached tokens.
    pub fn reports_cached(&self, api: Api) {
        if !self.has_reported_cached(api) {
            self.reports_cached.fetch_or(bit(api), Relaxed);
        }
    }

    /// Whether an answer of this API has named its cached tokens before. Engines leave them out when there are none.
    #[must_use]
    pub fn has_reported_cached(&self, api: Api) -> bool {
        self.reports_cached.load(Relaxed) & bit(api) != 0
    }

    /// Model and adapter names that the engine lists under `/v1/models`.
    #[must_use]
    pub fn models(&self) -> Arc<Vec<Box<str>>> {
        self.models.load_full()
    }

    /// Whether the engine lists this model; `None` when its list was never read.
    #[must_use]
    pub fn has_model(&self, model: &str) -> Option<bool> {
        let known = self.models_known.load(Relaxed);
        known.then(|| self.models.load().iter().any(|m| **m == *model))
    }

    /// Stores the names under `/v1/models`, if they changed.
    pub fn set_models(&self, names: Vec<Box<str>>) {
        if **self.models.load() != names {
            self.models.store(Arc::new(names));
        }
        self.models_known.store(true, Relaxed);
    }
}

fn bit(api: Api) -> u32 {
    match api {
        Api::Chat => 1,
        Api::Completions => 2,
        Api::Responses => 4,
        Api::Messages => 8,
        Api::Other(_) => 16,
    }
}
