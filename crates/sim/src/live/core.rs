//! The engine model in real time: one task runs its steps, handlers hand requests in and get tokens out.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    time::{Duration, Instant},
};

use super::{
    LiveOptions,
    metrics::{Metrics, Page},
    pd::Transfers,
};
use crate::{
    model::{
        Counters, Engine, EngineParams, Event, FinishReason, InvalidParams, Load, Rejected,
        RequestId, Submission,
    },
    rng::Rng,
};

/// One thing that happened to one choice of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Which of the request's choices.
    pub(super) choice: usize,
    /// Position of the new token in the answer; `None` when the request was given up without one.
    pub(super) token: Option<usize>,
    /// Prompt tokens found in the cache.
    pub(super) cached: usize,
    /// Set with the last one.
    pub(super) finish: Option<FinishReason>,
}

/// The sequences of one HTTP request. Dropping it aborts those that still run.
#[derive(Debug)]
pub(super) struct Ticket {
    core: Arc<Core>,
    ids: Vec<RequestId>,
}

impl Ticket {
    /// A number of its own for each request of an engine.
    pub(super) fn number(&self) -> u64 {
        self.ids.first().map_or(0, |id| id.0)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.core.state.lock();
        for id in &self.ids {
            if state.routes.remove(id).is_some() {
                state.engine.abort(*id);
            }
        }
    }
}

#[derive(Debug)]
struct Route {
    choice: usize,
    sender: mpsc::UnboundedSender<Progress>,
}

#[derive(Debug)]
struct State {
    engine: Engine,
    metrics: Metrics,
    routes: HashMap<RequestId, Route>,
    next_id: u64,
    aborting: bool,
    /// Engine time at which the current step ends; infinity between steps.
    step_end: f64,
}

/// The engine and everything that its handlers share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: LiveOptions,
    /// Start of the engine, seconds since 1970.
    pub(super) created: f64,
    pub(super) max_model_len: usize,
    pub(super) block_size: usize,
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// What it has computed for decode engines.
    pub(super) transfers: Arc<Transfers>,
    started: Instant,
    state: Mutex<State>,
    wake: Notify,
}

impl Core {
    pub(super) fn new(
        params: EngineParams,
        options: LiveOptions,
        address: SocketAddr,
    ) -> Result<Arc<Self>, InvalidParams> {
        let metrics = Metrics::new(&params);
        let (max_model_len, block_size) = (params.max_model_len, params.block_size);
        let engine = Engine::new(params)?;
        let state = State {
            engine,
            metrics,
            routes: HashMap::new(),
            next_id: 0,
            aborting: false,
            step_end: f64::INFINITY,
        };
        Ok(Arc::new(Self {
            options,
            created: since_1970(),
            max_model_len,
            block_size,
            address,
            transfers: Arc::default(),
            started: Instant::now(),
            state: Mutex::new(state),
            wake: Notify::new(),
        }))
    }

    /// Queues the choices of one request: all of them or none.
    pub(super) fn submit(
        self: &Arc<Self>,
        choices: impl Iterator<Item = Submission>,
    ) -> Result<(Ticket, mpsc::UnboundedReceiver<Progress>), Rejected> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut ticket = Ticket {
            core: Arc::clone(self),
            ids: Vec::new(),
        };
        let mut failed = None;
        {
            let mut state = self.state.lock();
            // A late timer leaves the engine's clock behind; nothing arrives after the step it was there for.
            let now = self.now().min(state.step_end);
            for (choice, mut submission) in choices.enumerate() {
                let id = RequestId(state.next_id);
                state.next_id += 1;
                submission.id = id;
                if state.aborting {
                    let aborted = Progress {
                        choice,
                        token: None,
                        cached: 0,
                        finish: Some(FinishReason::Abort),
                    };
                    let _ = sender.send(aborted);
                    continue;
                }
                if let Err(rejected) = state.engine.submit(submission, now) {
                    failed = Some(rejected);
                    break;
                }
                state.routes.insert(
                    id,
                    Route {
                        choice,
                        sender: sender.clone(),
                    },
                );
                ticket.ids.push(id);
            }
        }
        // The ticket takes the lock to undo what was queued, so it is dropped only here.
        if let Some(rejected) = failed {
            return Err(rejected);
        }
        self.wake.notify_one();
        Ok((ticket, receiver))
    }

    /// Ends every request with the finish reason `abort`, now and from now on.
    pub(super) fn abort_all(&self) {
        let mut state = self.state.lock();
        state.aborting = true;
        for (id, route) in std::mem::take(&mut state.routes) {
            state.engine.abort(id);
            let aborted = Progress {
                choice: route.choice,
                token: None,
                cached: 0,
                finish: Some(FinishReason::Abort),
            };
            let _ = route.sender.send(aborted);
        }
    }

    /// Empties the prefix cache; `false` while requests run.
    pub(super) fn reset_prefix_cache(&self) -> bool {
        self.state.lock().engine.reset_prefix_cache()
    }

    pub(super) fn load(&self) -> Load {
        self.state.lock().engine.load()
    }

    pub(super) fn counters(&self) -> Counters {
        self.state.lock().engine.counters()
    }

    pub(super) fn metrics_page(&self) -> String {
        let state = self.state.lock();
        let page = Page {
            model: self.options.first_name(),
            load: state.engine.load(),
            counters: state.engine.counters(),
            params: state.engine.params(),
            created: self.created,
        };
        state.metrics.render(self.options.engine, &page)
    }

    /// Whole seconds since 1970, for the answers.
    pub(super) fn now_since_1970(&self) -> u64 {
        since_1970() as u64
    }

    /// The `system_fingerprint` of the answers: the same for the same seed.
    pub(super) fn fingerprint(&self) -> String {
        let number = Rng::new(self.options.seed).next_u64() >> 32;
        format!("vllm-{}-{number:08x}", super::VERSION)
    }

    /// Runs steps until the task is aborted.
    pub(super) async fn drive(self: Arc<Self>) {
        let mut events = Vec::new();
        let mut now = self.now();
        loop {
            let Some(duration) = self.start_step(now) else {
                self.wake.notified().await;
                now = self.now();
                continue;
            };
            // Steps follow one another on the engine's own clock, so a late timer delays one step, not all after it.
            now += duration;
            tokio::time::sleep_until(self.instant(now)).await;
            self.end_step(now, &mut events);
        }
    }

    fn start_step(&self, now: f64) -> Option<f64> {
        let mut state = self.state.lock();
        let duration = state.engine.start_step(now);
        state.step_end = duration.map_or(f64::INFINITY, |duration| now + duration);
        duration
    }

    fn end_step(&self, now: f64, events: &mut Vec<Event>) {
        let mut state = self.state.lock();
        let State {
            engine,
            metrics,
            routes,
            ..
        } = &mut *state;
        events.clear();
        engine.end_step(now, events);
        metrics.step(engine.load().last_step_tokens);
        for event in events.iter() {
            metrics.event(event);
            let progress = |choice| Progress {
                choice,
                token: Some(event.index),
                cached: event.cached,
                finish: event.finished.map(|(reason, _)| reason),
            };
            if event.finished.is_some() {
                if let Some(route) = routes.remove(&event.id) {
                    let _ = route.sender.send(progress(route.choice));
                }
            } else if let Some(route) = routes.get(&event.id) {
                let _ = route.sender.send(progress(route.choice));
            }
        }
    }

    /// Engine time: seconds since the start, times the scale.
    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * self.options.time_scale
    }

    fn instant(&self, engine_time: f64) -> Instant {
        /// Steps may be set to take forever; the timer needs an end.
        const FOREVER: f64 = 1e9;
        self.started + Duration::from_secs_f64((engine_time / self.options.time_scale).min(FOREVER))
    }
}

fn since_1970() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |age| age.as_secs_f64())
}
