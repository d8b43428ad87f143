//! Many replays at a time.

use super::Tuning;
use super::settings::Settings;
use crate::replay::fleet::Setup;
use crate::replay::workload::Workload;
use crate::replay::world::{Choice, SetupError, replay};
use crate::report::Summary;
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

/// Figures, and the objective.
pub(super) type Run = (Summary, f64);

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
        let runs = self.measure(workload, field, 1, what)?;
        let mut ranked: Vec<_> = runs.iter().map(|run| run.1).enumerate().collect();
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        Ok(ranked)
    }

    /// Plays a workload with each of these settings, `draws` times with different draws; the figures are of the first
    /// time, the cost is the mean of all.
    pub(super) fn measure(
        &mut self,
        workload: &Workload,
        field: &[Settings],
        draws: u64,
        what: &str,
    ) -> Result<Vec<Run>, SetupError> {
        let jobs: Vec<(usize, u64)> = (0..field.len())
            .flat_map(|index| (0..draws).map(move |draw| (index, draw)))
            .collect();
        self.replays += jobs.len();
        let results: Mutex<Vec<Option<Result<Run, SetupError>>>> =
            Mutex::new(vec![None; jobs.len()]);
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..self.tuning.threads.clamp(1, jobs.len().max(1)) {
                scope.spawn(|| {
                    while let Some(&(index, draw)) = jobs.get(next.fetch_add(1, Relaxed)) {
                        let run = self.play(workload, &field[index], draw);
                        if let Some(place) = results
                            .lock()
                            .get_mut(index * draws as usize + draw as usize)
                        {
                            *place = Some(run);
                        }
                        let done = done.fetch_add(1, Relaxed) + 1;
                        (self.progress)(&format!("{what}: {done}/{}", jobs.len()));
                    }
                });
            }
        });
        let runs: Result<Vec<Run>, SetupError> =
            results.into_inner().into_iter().flatten().collect();
        let runs = runs?;
        let mean = |group: &[Run]| {
            let sum: f64 = group.iter().map(|run| run.1).sum();
            group
                .first()
                .map(|first| (first.0.clone(), sum / group.len() as f64))
        };
        Ok(runs.chunks(draws as usize).filter_map(mean).collect())
    }

    fn play(&self, workload: &Workload, settings: &Settings, draw: u64) -> Result<Run, SetupError> {
        // Settings of the search are valid, see their tests.
        let config = settings
            .config()
            .unwrap_or_else(|_| SchedulerConfig::default());
        let setup = Setup {
            seed: self.setup.seed.wrapping_add(draw),
            ..self.setup.clone()
        };
        let outcome = replay("", workload, &setup, Choice::Plugins(&config), &mut |_| {})?;
        let cost = self.tuning.objective.cost(&outcome.summary);
        Ok((outcome.summary, cost))
    }
}
