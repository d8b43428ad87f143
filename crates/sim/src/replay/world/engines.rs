//! An engine's place in the fleet: its lives, and the latencies that its metrics page tells.

use crate::model::{Counters, Engine, EngineParams, Event, InvalidParams};
use crate::replay::collect::Rest;
use routing::fleet::Gauges;

/// One pod's engine, through all its lives.
pub(super) struct Slot {
    pub(super) engine: Engine,
    /// Counts its lives: what a former one had planned does not happen.
    pub(super) life: u32,
    /// Whether it answers.
    pub(super) up: bool,
    /// Whether routers know it.
    pub(super) member: bool,
    /// Scrapes that failed since the last good one.
    pub(super) missed: u32,
    stepping: bool,
    ttft: Mean,
    tpot: Mean,
    /// Of earlier lives.
    counted: Counters,
    evictions: u64,
}

/// The mean of what came since the last reading; the one before where nothing came, as the live router reads it.
#[derive(Default)]
struct Mean {
    sum: f64,
    count: u32,
    last: f32,
}

impl Mean {
    fn add(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count += 1;
    }

    fn read(&mut self) -> f32 {
        if self.count > 0 {
            #[allow(clippy::cast_possible_truncation, reason = "a gauge is no more exact")]
            let mean = (self.sum / f64::from(self.count)) as f32;
            *self = Self {
                last: mean,
                ..Self::default()
            };
        }
        self.last
    }
}

impl Slot {
    pub(super) fn new(params: EngineParams) -> Result<Self, InvalidParams> {
        Ok(Self {
            engine: Engine::new(params)?,
            life: 0,
            up: true,
            member: true,
            missed: 0,
            stepping: false,
            ttft: Mean::default(),
            tpot: Mean::default(),
            counted: Counters::default(),
            evictions: 0,
        })
    }

    /// Starts a step if none is under way; tells how long it takes.
    pub(super) fn start_step(&mut self, now: f64) -> Option<f64> {
        if self.stepping {
            return None;
        }
        let seconds = self.engine.start_step(now)?;
        self.stepping = true;
        Some(seconds)
    }

    /// Ends the step under way; `false` when there is none.
    pub(super) fn end_step(&mut self, now: f64, events: &mut Vec<Event>) -> bool {
        if !std::mem::take(&mut self.stepping) {
            return false;
        }
        self.engine.end_step(now, events);
        for event in &*events {
            match event.index {
                0 => self.ttft.add(event.after),
                _ => self.tpot.add(event.after),
            }
        }
        true
    }

    /// Loses all requests and the cache, and is away.
    pub(super) fn crash(&mut self) {
        self.count();
        if let Ok(fresh) = Engine::new(self.engine.params().clone()) {
            self.engine = fresh;
        }
        self.life += 1;
        self.up = false;
        self.stepping = false;
    }

    /// What its metrics page says; `None` while it is away.
    pub(super) fn read(&mut self) -> Option<Gauges> {
        if !self.up {
            self.missed += 1;
            return None;
        }
        self.missed = 0;
        let load = self.engine.load();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        #[allow(clippy::cast_possible_truncation, reason = "a gauge is no more exact")]
        let kv_usage = load.kv_usage as f32;
        Some(Gauges {
            waiting: count(load.waiting),
            running: count(load.running),
            kv_usage,
            ttft: self.ttft.read(),
            tpot: self.tpot.read(),
        })
    }

    /// Requests that it runs or that wait.
    pub(super) fn requests(&self) -> usize {
        let load = self.engine.load();
        load.running + load.waiting
    }

    /// Takes the sums of the present life to those of earlier ones.
    fn count(&mut self) {
        let counters = self.engine.counters();
        self.counted.prefix_queries += counters.prefix_queries;
        self.counted.prefix_hits += counters.prefix_hits;
        self.counted.preemptions += counters.preemptions;
        self.evictions += self.engine.pool().evictions();
    }

    pub(super) fn add_to(&self, rest: &mut Rest) {
        let counters = self.engine.counters();
        rest.prefix_queries += self.counted.prefix_queries + counters.prefix_queries;
        rest.prefix_hits += self.counted.prefix_hits + counters.prefix_hits;
        rest.preemptions += self.counted.preemptions + counters.preemptions;
        rest.block_evictions += self.evictions + self.engine.pool().evictions();
    }
}
