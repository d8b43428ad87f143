//! Searches settings for a workload by successive halving, and tells what each change is worth.
//!
//! Jamieson and Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (AISTATS 2016): many
//! candidates play a small part of the trace, the better third a part three times as long, and so on. Then each setting of the
//! best one is tried with its other values, and changes that do not pay are taken back. The last part of the trace is held out: it takes no part in the search, and what is promised is measured on it, with other draws.

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
    /// Share of the workload's time that is held out, 0..1.
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

/// Settings, and what they did with the held-out part.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The settings.
    pub settings: Settings,
    /// Figures of one run.
    pub summary: Summary,
    /// The objective, on average over runs with different draws.
    pub cost: f64,
}

/// A change and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What was changed.
    pub difference: Difference,
    /// The objective on the held-out part if this change alone were taken back.
    pub without: f64,
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
}

impl Tuned {
    /// How much less the best settings cost on the held-out part, as a share; 0 or less is no gain.
    #[must_use]
    pub fn gain(&self) -> f64 {
        1.0 - self.best.cost / self.start.cost.max(f64::MIN_POSITIVE)
    }
}

/// One of so many of a round go on.
const KEEP: usize = 3;
/// Shares of the training part that the rounds play.
const ROUNDS: [f64; 3] = [1.0 / 9.0, 1.0 / 3.0, 1.0];
/// A change that is worth less than this share of the cost is taken back: simple settings are better.
const WORTH: f64 = 0.005;
/// Runs of the held-out part, each with draws of its own.
const DRAWS: u64 = 3;

/// Searches from a configuration on. `progress` is told what is going on.
///
/// # Errors
/// The setup makes no sense.
pub fn tune(
    workload: &Workload,
    setup: &Setup,
    start: &SchedulerConfig,
    tuning: &Tuning,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Tuned, SetupError> {
    let (training, held_out) = workload.split(1.0 - tuning.held_out);
    let start = Settings::of(start);
    let mut jobs = Jobs::new(setup, tuning, progress);

    let mut rng = Rng::new(setup.seed).fork(SEARCH);
    let mut field = vec![start.clone()];
    // Few settings may have fewer neighbours than are asked for.
    for _ in 0..tuning.candidates * 10 {
        let candidate = start.vary(&mut rng);
        if field.len() < tuning.candidates && !field.contains(&candidate) {
            field.push(candidate);
        }
    }
    let mut best = start.clone();
    for share in ROUNDS {
        let (part, _) = training.split(share);
        let part = if share < 1.0 { &part } else { &training };
        let ranked = jobs.rank(
            part,
            &field,
            &format!(
                "{} candidates on {:.0} % of the training part",
                field.len(),
                share * 100.0
            ),
        )?;
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
    let runs = jobs.measure(
        &held_out,
        &trials,
        DRAWS,
        "the best settings on the held-out part",
    )?;
    let trial = |index: usize| Trial {
        settings: trials[index].clone(),
        summary: runs[index].0.clone(),
        cost: runs[index].1,
    };
    let changes = differences.into_iter().zip(runs.iter().skip(2));
    Ok(Tuned {
        start: trial(0),
        best: trial(1),
        changes: changes
            .map(|(difference, (_, without))| Change {
                difference,
                without: *without,
            })
            .collect(),
        replays: jobs.replays(),
    })
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
        let runs = jobs.measure(training, &field, 1, &what)?;
        let cost = runs[0].1;
        let least = field
            .iter()
            .zip(&runs)
            .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        if let Some((settings, run)) = least
            && run.1 < cost * (1.0 - WORTH)
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
        let runs = jobs.measure(training, &tried, 1, &what)?;
        let cost = runs[0].1;
        let without = tried.iter().zip(&runs).skip(1);
        let cheapest = without.min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        match cheapest {
            Some((settings, run)) if run.1 <= cost * (1.0 + WORTH) => best = settings.clone(),
            _ => return Ok(best),
        }
    }
}
