//! Many replays at a time.

use super::settings::Settings;
use super::{DRAWS, Run, Tuning};
use crate::replay::fleet::Setup;
use crate::replay::workload::Workload;
use crate::replay::world::{Choice, SetupError, replay_from};
use parking_lot::Mutex;
use routing::schedule::SchedulerConfig;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs replays and counts them.
pub(super) struct Jobs<'t> {
    setup: &'t Setup,
    tuning: &'t Tuning,
    progress: &'t (dyn Fn(&str) + Sync),
    replays: usize,
}

impl<'t> Jobs<'t> {
    pub(super) fn new(
        setup: &'t Setup,
        tuning: &'t Tuning,
        progress: &'t (dyn Fn(&str) + Sync),
    ) -> Self {
        Self {
            setup,
            tuning,
            progress,
            replays: 0,
        }
    }

    pub(super) fn replays(&self) -> usize {
        self.replays
    }

    /// The indices of these settings with their costs, the least first.
    pub(super) fn rank(
        &mut self,
        workload: &Workload,
        field: &[Settings],
        what: &str,
    ) -> Result<Vec<(usize, f64)>, SetupError> {
        let costs = self.costs(workload, field, what)?;
        let mut ranked: Vec<_> = costs.into_iter().enumerate().collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        Ok(ranked)
    }

    /// The costs of a workload with each of these settings, always with the same draws.
    pub(super) fn costs(
        &mut self,
        workload: &Workload,
        field: &[Settings],
        what: &str,
    ) -> Result<Vec<f64>, SetupError> {
        let jobs: Vec<_> = field.iter().map(|settings| (settings, 0)).collect();
        let runs = self.play_all(0, workload, &jobs, what)?;
        Ok(runs.into_iter().map(|run| run.cost).collect())
    }

    /// Plays a workload with each of these settings, several times with draws that the search has not had, and measures what
    /// follows its first `warm_up` requests.
    pub(super) fn measure_after(
        &mut self,
        warm_up: usize,
        workload: &Workload,
        field: &[Settings],
        what: &str,
    ) -> Result<Vec<Vec<Run>>, SetupError> {
        let draws = |settings| (1..=DRAWS).map(move |draw| (settings, draw));
        let jobs: Vec<_> = field.iter().flat_map(draws).collect();
        let runs = self.play_all(warm_up, workload, &jobs, what)?;
        Ok(runs.chunks(DRAWS as usize).map(<[Run]>::to_vec).collect())
    }

    fn play_all(
        &mut self,
        warm_up: usize,
        workload: &Workload,
        jobs: &[(&Settings, u64)],
        what: &str,
    ) -> Result<Vec<Run>, SetupError> {
        self.replays += jobs.len();
        let results: Mutex<Vec<Option<Result<Run, SetupError>>>> =
            Mutex::new(vec![None; jobs.len()]);
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            loop {
                let index = next.fetch_add(1, Relaxed);
                let Some(&(settings, draw)) = jobs.get(index) else {
                    return;
                };
                let run = self.play(warm_up, workload, settings, draw);
                if let Some(place) = results.lock().get_mut(index) {
                    *place = Some(run);
                }
                let done = done.fetch_add(1, Relaxed) + 1;
                (self.progress)(&format!("{what}: {done}/{}", jobs.len()));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.tuning.threads.clamp(1, jobs.len().max(1)) {
                scope.spawn(work);
            }
        });
        results.into_inner().into_iter().flatten().collect()
    }

    fn play(
        &self,
        warm_up: usize,
        workload: &Workload,
        settings: &Settings,
        draw: u64,
    ) -> Result<Run, SetupError> {
        // Settings of the search are valid, see their tests.
        let config = settings
            .config()
            .unwrap_or_else(|_| SchedulerConfig::default());
        let setup = Setup {
            seed: self.setup.seed.wrapping_add(draw),
            ..self.setup.clone()
        };
        let choice = Choice::Plugins(&config);
        let outcome = replay_from(warm_up, "", workload, &setup, choice, &mut |_| {})?;
        let cost = self.tuning.objective.cost(&outcome.summary);
        let summary = outcome.summary;
        Ok(Run { summary, cost })
    }
}
