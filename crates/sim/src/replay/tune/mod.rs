//! Searches settings for a workload by successive halving, and tells what each change is worth.
//!
//! Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (AISTATS 2016): many
//! candidates play a small part of the trace, the better third a part three times as long, and so on. Then each setting of the
//! best one is tried with its other values, and changes that do not pay are taken back.
//!
//! The last requests are held out: no part of the search plays them. What is promised is measured on them alone, with other
//! draws, in replays of the whole trace, so that they meet the caches and indexes that the requests before them left.

mod rounds;
mod settings;

pub use settings::{Difference, Settings};

use super::fleet::Setup;
use super::workload::Workload;
use super::world::SetupError;
use crate::report::Summary;
use crate::rng::Rng;
use rounds::Jobs;
use routing::schedule::SchedulerConfig;

/// What is to be made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean time to first token.
    TtftMean,
    /// Its 90th percentile.
    TtftP90,
    /// The share of prompt tokens that are not found in a cache.
    Uncached,
}

impl Objective {
    /// What a run costs. A request that fails counts as a minute's wait, or as uncached.
    #[must_use]
    pub fn cost(self, run: &Summary) -> f64 {
        /// About what clients wait before they give up, seconds.
        const FAILURE: f64 = 60.0;
        let failed = run.failed as f64 / run.requests.max(1) as f64;
        match self {
            Self::TtftMean => run.ttft.mean.as_secs_f64() * (1.0 - failed) + FAILURE * failed,
            Self::TtftP90 => run.ttft.p90.as_secs_f64() * (1.0 - failed) + FAILURE * failed,
            Self::Uncached => (1.0 - run.cached_percent() / 100.0) * (1.0 - failed) + failed,
        }
    }
}

/// How to search.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// What is to be made small.
    pub objective: Objective,
    /// Candidates of the first round; the start is one of them.
    pub candidates: usize,
    /// Share of the requests, the last ones, that is held out, 0..1.
    pub held_out: f64,
    /// Replays at a time.
    pub threads: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            objective: Objective::TtftMean,
            candidates: 54,
            held_out: 0.3,
            threads: 1,
        }
    }
}

/// Settings, and what they did with the held-out requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The settings.
    pub settings: Settings,
    /// One run for each draw. The runs of two trials in the same place have the same draws.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The figures.
    pub summary: Summary,
    /// The objective.
    pub cost: f64,
}

impl Trial {
    /// The objective, on average over the runs.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.mean(|run| run.cost)
    }

    /// How far a run's objective is from the average at most.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let mean = self.cost();
        let distances = self.runs.iter().map(|run| (run.cost - mean).abs());
        distances.fold(0.0, f64::max)
    }

    /// A figure, on average over the runs.
    pub fn mean(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        self.runs.iter().map(figure).sum::<f64>() / self.runs.len().max(1) as f64
    }
}

/// A change and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What was changed.
    pub difference: Difference,
    /// The best settings, with this change alone taken back.
    pub without: Trial,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The settings at the start.
    pub start: Trial,
    /// The best ones; the start itself if none was better.
    pub best: Trial,
    /// What makes the difference.
    pub changes: Vec<Change>,
    /// Replays that the search took.
    pub replays: usize,
    /// Requests that were held out.
    pub held_out: usize,
}

impl Tuned {
    /// How much less the best settings cost on the held-out part, as a share; 0 or less is no gain.
    #[must_use]
    pub fn gain(&self) -> f64 {
        1.0 - self.best.cost() / self.start.cost().max(f64::MIN_POSITIVE)
    }

    /// Whether the best settings were better with each of the draws.
    #[must_use]
    pub fn is_better_with_every_draw(&self) -> bool {
        let mut pairs = self.best.runs.iter().zip(&self.start.runs);
        pairs.all(|(best, start)| best.cost < start.cost)
    }
}

/// One of so many of a round go on.
const KEEP: usize = 3;
/// Shares of the training part that the rounds play.
const ROUNDS: [f64; 3] = [1.0 / 9.0, 1.0 / 3.0, 1.0];
/// A change that is worth less than this share of the cost is taken back: simple settings are better.
const WORTH: f64 = 0.005;
/// Runs that measure, each with draws of its own.
const DRAWS: u64 = 3;
/// Fewer requests held out than this say nothing.
const HELD_OUT: usize = 30;

/// Searches from a configuration on. `progress` is told what is going on.
///
/// # Errors
/// The setup makes no sense, or so few requests are held out that they say nothing.
pub fn tune(
    workload: &Workload,
    setup: &Setup,
    start: &SchedulerConfig,
    tuning: &Tuning,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Tuned, SetupError> {
    let requests = workload.requests.len();
    let trained = part(requests, 1.0 - tuning.held_out);
    let held_out = requests - trained;
    if held_out < HELD_OUT {
        return Err(SetupError::HeldOut {
            held_out,
            requests,
            least: HELD_OUT,
        });
    }
    let training = workload.head(trained);
    let start = Settings::of(start);
    let mut jobs = Jobs::new(setup, tuning, progress);

    let mut rng = Rng::new(setup.seed).fork(SEARCH);
    let mut field = vec![start.clone()];
    // Few settings may have fewer neighbours than are asked for.
    for _ in 0..tuning.candidates.saturating_mul(10) {
        let candidate = start.vary(&mut rng);
        if field.len() < tuning.candidates && !field.contains(&candidate) {
            field.push(candidate);
        }
    }
    let mut best = start.clone();
    for share in ROUNDS {
        let count = part(trained, share);
        let head = (count < trained).then(|| training.head(count));
        let what = format!("{} candidates on {count} requests", field.len());
        let ranked = jobs.rank(head.as_ref().unwrap_or(&training), &field, &what)?;
        field = ranked
            .iter()
            .map(|&(index, _)| field[index].clone())
            .collect();
        field.truncate(field.len().div_ceil(KEEP));
        best = field[0].clone();
        // What was chosen on a small part must beat the start on the whole.
        if !field.contains(&start) {
            field.push(start.clone());
        }
    }
    best = polish(&mut jobs, &training, best)?;
    best = simplify(&mut jobs, &training, &start, best)?;

    let differences = start.differences(&best);
    let mut trials = vec![start.clone(), best.clone()];
    trials.extend(differences.iter().map(|d| best.with(d.index, &start)));
    let what = format!("the best settings on {held_out} other requests");
    let runs = jobs.measure_after(trained, workload, &trials, &what)?;
    let mut trials = trials.into_iter().zip(runs);
    let mut next = || {
        trials
            .next()
            .map(|(settings, runs)| Trial { settings, runs })
    };
    let (Some(start), Some(best)) = (next(), next()) else {
        // There are as many runs as trials, of which these are the first two.
        return Err(SetupError::None("trial"));
    };
    Ok(Tuned {
        start,
        best,
        changes: differences
            .into_iter()
            .zip(std::iter::from_fn(next))
            .map(|(difference, without)| Change {
                difference,
                without,
            })
            .collect(),
        replays: jobs.replays(),
        held_out,
    })
}

/// That share of so many requests.
fn part(requests: usize, share: f64) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let count = (requests as f64 * share).round() as usize;
    count.min(requests)
}

/// Keeps the draws of the search apart from all others.
const SEARCH: u64 = 1 << 41;

/// Looks, for one setting after the other, whether another value is better.
fn polish(
    jobs: &mut Jobs<'_>,
    training: &Workload,
    mut best: Settings,
) -> Result<Settings, SetupError> {
    for index in 0..Settings::SEARCHED {
        let mut field = vec![best.clone()];
        field.extend(best.neighbours(index));
        let what = format!("setting {} of {}", index + 1, Settings::SEARCHED);
        let costs = jobs.costs(training, &field, &what)?;
        let least = field.iter().zip(&costs).min_by(|a, b| a.1.total_cmp(b.1));
        if let Some((settings, least)) = least
            && *least < costs[0] * (1.0 - WORTH)
        {
            best = settings.clone();
        }
    }
    Ok(best)
}

/// Takes back, one after the other, the changes that do not pay.
fn simplify(
    jobs: &mut Jobs<'_>,
    training: &Workload,
    start: &Settings,
    mut best: Settings,
) -> Result<Settings, SetupError> {
    loop {
        let differences = start.differences(&best);
        if differences.is_empty() {
            return Ok(best);
        }
        let mut tried = vec![best.clone()];
        tried.extend(differences.iter().map(|d| best.with(d.index, start)));
        let what = format!("which of {} changes pay", differences.len());
        let costs = jobs.costs(training, &tried, &what)?;
        let without = tried.iter().zip(&costs).skip(1);
        let cheapest = without.min_by(|a, b| a.1.total_cmp(b.1));
        match cheapest {
            Some((settings, least)) if *least <= costs[0] * (1.0 + WORTH) => {
                best = settings.clone();
            }
            _ => return Ok(best),
        }
    }
}
