//! The loop over virtual time: arrivals, steps of engines, scrapes, and what happens to pods.

mod agenda;
mod engines;
mod flight;
mod prompt;

use super::collect::{Answered, Collect, Rest};
use super::fleet::{Setup, What};
use super::oracle;
use super::outcome::Outcome;
use super::router::{Router, models};
use super::workload::{Request, Workload};
use crate::model::{Event, FinishReason, InvalidParams, Rejected, RequestId, Submission};
use crate::rng::Rng;
use agenda::{Agenda, Next};
use engines::Slot;
use flight::{Attempt, Flight};
pub(super) use prompt::Prompt;
use routing::request::{ModelRequest, extract};
use routing::schedule::SchedulerConfig;
use std::collections::BTreeMap;

/// How pods are chosen.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'c> {
    /// By the router's plugins.
    Plugins(&'c SchedulerConfig),
    /// By an oracle: the engine with the least estimated time to first token, from its real cache and queue.
    Oracle,
}

/// Why nothing can be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SetupError {
    /// No engine works with these parameters.
    #[error("the engine's parameters")]
    Engine(#[from] InvalidParams),
    /// There must be at least one.
    #[error("there must be at least one {0}")]
    None(&'static str),
    /// Nothing can happen to a pod that there will not be.
    #[error("something happens to pod {0}, but there is no such pod")]
    NoSuchPod(usize),
    /// Engines would be read too often, or never.
    #[error("the scrape interval must be at least {MIN_SCRAPE_INTERVAL} seconds")]
    ScrapeInterval,
    /// The requests' times are not what they should be.
    #[error(
        "its requests span {0:.0} days, more than {MAX_DAYS}: a trace has its timestamp in milliseconds, a log has at in seconds"
    )]
    Span(f64),
    /// A search would measure what it found on next to nothing.
    #[error(
        "only {held_out} of {requests} requests are held out: that is too few to measure on, {least} are needed"
    )]
    HeldOut {
        /// Requests held out.
        held_out: usize,
        /// All requests.
        requests: usize,
        /// How many it takes.
        least: usize,
    },
}

/// Least time between two readings of the engines' metrics, seconds: a hundredth of the usual one.
const MIN_SCRAPE_INTERVAL: f64 = 0.01;
/// Longest time of a workload. Each second of it costs a reading of all engines' metrics.
const MAX_DAYS: f64 = 31.0;
const SECONDS_A_DAY: f64 = 86_400.0;

/// Plays a workload to its end. `progress` is told how many requests have ended, now and then.
///
/// # Errors
/// The setup makes no sense.
pub fn replay(
    name: &str,
    workload: &Workload,
    setup: &Setup,
    choice: Choice<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Outcome, SetupError> {
    replay_from(0, name, workload, setup, choice, progress)
}

/// As [`replay`], but the first `warm_up` requests only leave their traces in caches and indexes: the figures are of those
/// after them. What engines and indexes count includes all.
pub(super) fn replay_from(
    warm_up: usize,
    name: &str,
    workload: &Workload,
    setup: &Setup,
    choice: Choice<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Outcome, SetupError> {
    let mut world = World::new(workload, setup, choice)?;
    world.warm_up = warm_up;
    let mut shown = 0;
    while let Some((at, what)) = world.agenda.next() {
        world.now = at;
        world.happens(what);
        let ended = world.collect.ended();
        if ended >= shown + PROGRESS {
            shown = ended;
            progress(ended);
        }
        if world.is_over() {
            break;
        }
    }
    progress(world.collect.ended());
    Ok(world.finish(name))
}

/// Requests between two reports of progress.
const PROGRESS: u64 = 100;
/// Scrapes that must fail before a pod's figures are no longer believed, as in the live router.
const MISSES: u32 = 10;
/// Keeps the draws of each router apart from all others.
const ROUTERS: u64 = 1 << 40;

struct World<'w> {
    workload: &'w Workload,
    setup: &'w Setup,
    /// None where the oracle chooses.
    routers: Vec<Router>,
    engines: Vec<Slot>,
    flights: BTreeMap<usize, Flight>,
    agenda: Agenda,
    now: f64,
    collect: Collect,
    /// So many of the first requests are not counted.
    warm_up: usize,
    last_answer: f64,
    events: Vec<Event>,
    /// The body of the request at hand.
    body: Vec<u8>,
}

impl<'w> World<'w> {
    fn new(
        workload: &'w Workload,
        setup: &'w Setup,
        choice: Choice<'_>,
    ) -> Result<Self, SetupError> {
        check(workload, setup)?;
        let routers = match choice {
            Choice::Oracle => Vec::new(),
            Choice::Plugins(config) => {
                let models = models(workload);
                let draws = Rng::new(setup.seed);
                let replicas = 0..setup.replicas as u64;
                let router = |n| Router::new(config, &models, draws.fork(ROUTERS + n));
                replicas.map(router).collect()
            }
        };
        let mut world = Self {
            workload,
            setup,
            routers,
            engines: Vec::new(),
            flights: BTreeMap::new(),
            agenda: Agenda::default(),
            now: 0.0,
            collect: Collect::default(),
            warm_up: 0,
            last_answer: 0.0,
            events: Vec::new(),
            body: Vec::new(),
        };
        for _ in 0..setup.pods {
            world.join()?;
        }
        // A live router has read its engines' metrics before the first request.
        world.agenda.plan(0.0, Next::Scrape);
        for happening in &setup.happenings {
            world
                .agenda
                .plan(happening.at, Next::Happening(happening.what));
        }
        if !workload.requests.is_empty() {
            world.agenda.plan(workload.requests[0].at, Next::Arrival(0));
        }
        Ok(world)
    }

    fn happens(&mut self, what: Next) {
        match what {
            Next::Arrival(number) => {
                if let Some(next) = self.workload.requests.get(number + 1) {
                    self.agenda.plan(next.at, Next::Arrival(number + 1));
                }
                self.arrive(number);
            }
            Next::StepEnd { engine, life } => self.step_ends(engine, life),
            Next::Scrape => {
                self.scrape();
                self.agenda
                    .plan(self.now + self.setup.scrape_interval, Next::Scrape);
            }
            Next::Happening(What::Join) => {
                // The parameters were good enough for the first pods.
                let _ = self.join();
            }
            Next::Happening(What::Leave { pod }) => {
                self.engines[pod].member = false;
                self.routers.iter_mut().for_each(|router| router.leave(pod));
            }
            Next::Happening(What::Restart { pod, away }) => self.crash(pod, away),
            Next::Back { engine, life } => {
                let slot = &mut self.engines[engine];
                // Unless it has crashed again while it was away.
                slot.up |= slot.life == life;
            }
        }
    }

    /// Whether all requests have ended, or nothing will ever move again.
    fn is_over(&self) -> bool {
        let all = self.workload.requests.len() as u64;
        self.collect.ended() == all || self.agenda.is_idle()
    }

    fn join(&mut self) -> Result<(), SetupError> {
        self.engines.push(Slot::new(self.setup.engine.clone())?);
        self.routers.iter_mut().for_each(Router::join);
        Ok(())
    }

    fn arrive(&mut self, number: usize) {
        let request = &self.workload.requests[number];
        let mut made = std::mem::take(&mut self.body);
        let body = prompt::body(request, &mut made);
        let flight = extract(&request.path, None, body)
            .ok()
            .and_then(|read| self.decide(number, request, &read));
        self.body = made;
        match flight {
            Some((flight, prompt)) => self.ask(number, flight, Some(prompt)),
            None => self.fails(number),
        }
    }

    fn fails(&mut self, number: usize) {
        match number < self.warm_up {
            true => self.collect.uncounted(),
            false => self.collect.failed(),
        }
    }

    /// Chooses pods. `None` where no router would pass the request on.
    fn decide(
        &mut self,
        number: usize,
        request: &Request,
        read: &ModelRequest<'_>,
    ) -> Option<(Flight, Prompt)> {
        let prompt = Prompt::new(self.workload, request, read);
        if self.routers.is_empty() {
            let engines = self.engines.iter().enumerate();
            let candidates = engines.filter(|(_, slot)| slot.member && slot.up);
            let best = oracle::best(candidates.map(|(n, slot)| (n, &slot.engine)), &prompt);
            let attempts = best.iter().map(|candidate| Attempt {
                engine: candidate.engine,
                expected: candidate.cached,
            });
            return Some((Flight::new(None, None, attempts), prompt));
        }
        let replica = number % self.routers.len();
        let decision = self.routers[replica].decide(read, &request.path)?;
        let (tokens, bytes) = (prompt.tokens.len(), prompt.bytes);
        let attempts = decision.plan.attempts.iter().map(|pod| Attempt {
            engine: pod.id.0 as usize,
            // Of a prompt of so many bytes, that many in the cache are that share of its tokens.
            expected: decision.expected(pod.id).min(bytes) * tokens / bytes.max(1),
        });
        let flight = Flight::new(Some(replica), decision.plan.memo.clone(), attempts);
        Some((flight, prompt))
    }

    /// Asks the pods of a plan in turn, from the one that is next.
    fn ask(&mut self, number: usize, mut flight: Flight, mut prompt: Option<Prompt>) {
        let request = &self.workload.requests[number];
        while let Some(attempt) = flight.turn() {
            let slot = &mut self.engines[attempt.engine];
            if !slot.up {
                continue;
            }
            let prompt = prompt
                .take()
                .unwrap_or_else(|| Prompt::again(self.workload, request));
            let tokens = prompt.tokens.len() + request.answer.tokens as usize;
            if tokens > self.setup.engine.max_model_len {
                // The engine refuses it. Its answer is not even made, however long it should be.
                break;
            }
            let mut answer = Vec::new();
            request.answer.tokens(&mut answer);
            let submission = Submission {
                id: RequestId(number as u64),
                prompt: prompt.tokens,
                answer,
                finish: FinishReason::Stop,
                salt: prompt.salt,
                transferred: false,
            };
            match slot.engine.submit(submission, self.now) {
                Ok(()) => {
                    let router = flight.replica.map(|replica| &self.routers[replica]);
                    let pod = router.and_then(|router| router.pod(attempt.engine));
                    flight.hold(pod.map(|pod| pod.begin()));
                    self.flights.insert(number, flight);
                    self.start_step(attempt.engine);
                    return;
                }
                Err(Rejected::QueueFull) => {}
                Err(Rejected::TooLong { .. } | Rejected::Empty) => break,
            }
        }
        self.fails(number);
    }

    fn start_step(&mut self, engine: usize) {
        let slot = &mut self.engines[engine];
        if let Some(seconds) = slot.start_step(self.now) {
            let life = slot.life;
            self.agenda
                .plan(self.now + seconds, Next::StepEnd { engine, life });
        }
    }

    fn step_ends(&mut self, engine: usize, life: u32) {
        let mut events = std::mem::take(&mut self.events);
        let slot = &mut self.engines[engine];
        if slot.life == life && slot.end_step(self.now, &mut events) {
            events.drain(..).for_each(|event| self.token(engine, event));
            self.start_step(engine);
        }
        self.events = events;
    }

    fn token(&mut self, engine: usize, event: Event) {
        let Ok(number) = usize::try_from(event.id.0) else {
            return;
        };
        let arrived = self.workload.requests[number].at;
        if event.index == 0
            && let Some(flight) = self.flights.get_mut(&number)
        {
            flight.first_token = Some(self.now - arrived);
        }
        let Some((_, timing)) = event.finished else {
            return;
        };
        let Some(flight) = self.flights.remove(&number) else {
            return;
        };
        self.last_answer = self.now;
        if let Some(replica) = flight.replica
            && let Some(memo) = &flight.memo
        {
            let router = &self.routers[replica];
            // A pod that left meanwhile is unknown to the index, which then records nothing.
            let pod = prefix_index::PodId(u32::try_from(engine).unwrap_or(u32::MAX));
            let recorded = router.scheduler.served(memo, pod);
            self.collect.evicted(recorded.evicted);
        }
        if number < self.warm_up {
            self.collect.uncounted();
            return;
        }
        self.collect.answered(Answered {
            at: arrived,
            ttft: flight.first_token.unwrap_or_default(),
            total: self.now - arrived,
            queue: timing.queue,
            engine,
            prompt_tokens: timing.prompt_tokens,
            cached_tokens: timing.cached_tokens,
            predicted_tokens: flight.expected(),
            completion_tokens: timing.generated_tokens,
        });
    }

    /// An engine dies: what the client has seen a token of is lost, the rest goes to the next pods of its plan.
    fn crash(&mut self, engine: usize, away: f64) {
        self.engines[engine].crash();
        let life = self.engines[engine].life;
        self.agenda
            .plan(self.now + away, Next::Back { engine, life });
        let on = |(number, flight): (&usize, &Flight)| {
            (flight.engine() == Some(engine)).then_some(*number)
        };
        let lost: Vec<usize> = self.flights.iter().filter_map(on).collect();
        for number in lost {
            let Some(mut flight) = self.flights.remove(&number) else {
                continue;
            };
            flight.hold(None);
            match flight.first_token {
                Some(_) => self.fails(number),
                None => self.ask(number, flight, None),
            }
        }
    }

    fn scrape(&mut self) {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of milliseconds"
        )]
        let at_ms = (self.now * 1000.0) as u64;
        for (number, slot) in self.engines.iter_mut().enumerate() {
            let gauges = slot.read();
            for router in &self.routers {
                let Some(pod) = router.pod(number) else {
                    continue;
                };
                match gauges {
                    Some(gauges) => pod.load.publish(&gauges, at_ms),
                    None if slot.missed >= MISSES => pod.load.expire(),
                    None => {}
                }
            }
        }
        let loads = self.engines.iter().map(Slot::requests);
        self.collect.loads(self.now, loads);
    }

    fn finish(mut self, name: &str) -> Outcome {
        for number in std::mem::take(&mut self.flights).into_keys() {
            self.fails(number);
        }
        let entries = self.routers.iter().map(|r| r.scheduler.prefix_entries());
        let predicts = self.routers.iter().any(Router::predicts);
        let mut rest = Rest {
            entries: predicts.then(|| entries.sum::<usize>() as u64),
            predicts: predicts || self.routers.is_empty(),
            pods: self.engines.len(),
            end: self.last_answer,
            ..Rest::default()
        };
        self.engines.iter().for_each(|slot| slot.add_to(&mut rest));
        self.collect.finish(name.to_owned(), rest)
    }
}

fn check(workload: &Workload, setup: &Setup) -> Result<(), SetupError> {
    if setup.pods == 0 {
        return Err(SetupError::None("pod"));
    }
    if setup.replicas == 0 {
        return Err(SetupError::None("router"));
    }
    if !(setup.scrape_interval.is_finite() && setup.scrape_interval >= MIN_SCRAPE_INTERVAL) {
        return Err(SetupError::ScrapeInterval);
    }
    let days = workload.seconds() / SECONDS_A_DAY;
    if days > MAX_DAYS {
        return Err(SetupError::Span(days));
    }
    for happening in &setup.happenings {
        let joined =
            |other: &&super::Happening| other.what == What::Join && other.at <= happening.at;
        let pods = setup.pods + setup.happenings.iter().filter(joined).count();
        match happening.what {
            What::Restart { pod, .. } | What::Leave { pod } if pod >= pods => {
                return Err(SetupError::NoSuchPod(pod));
            }
            _ => {}
        }
    }
    Ok(())
}
