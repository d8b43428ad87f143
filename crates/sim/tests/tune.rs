//! Searches of settings: better where something can be, honest about what was measured, and the same on any machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use routing::schedule::SchedulerConfig;
use sim::model::EngineParams;
use sim::replay::{
    Choice, Generator, Objective, Setup, SetupError, Tuned, Tuning, Workload, generate, replay,
    tune,
};

fn four_pods() -> Setup {
    Setup {
        pods: 4,
        ..Setup::default()
    }
}

/// A short search.
fn search(workload: &Workload, setup: &Setup, tuning: Tuning) -> Result<Tuned, SetupError> {
    let tuning = Tuning {
        candidates: 3,
        threads: 2,
        ..tuning
    };
    tune(
        workload,
        setup,
        &SchedulerConfig::default(),
        &tuning,
        &|_| {},
    )
}

#[test]
fn a_search_finds_settings_that_are_better_where_there_are_some() {
    // All prompts share 24,000 bytes that the default settings cannot see past.
    let workload = shared_by_all();
    let setup = Setup {
        engine: EngineParams {
            num_blocks: 6_600,
            max_model_len: 32_768,
            ..EngineParams::datacentre_8b_long()
        },
        ..four_pods()
    };
    let tuning = Tuning {
        objective: Objective::TtftMean,
        candidates: 6,
        threads: 2,
        ..Tuning::default()
    };
    let start = SchedulerConfig::default();
    let tuned = tune(&workload, &setup, &start, &tuning, &|_| {}).unwrap();
    assert!(tuned.gain() > 0.05, "{tuned:#?}");
    assert!(!tuned.changes.is_empty());
    assert!(tuned.best.settings.config().is_ok());
}

#[test]
fn a_search_finds_the_same_on_any_number_of_threads() {
    let workload = generate(Generator::Repetition, 110, 6.0, 11);
    let find = |threads| {
        let tuning = Tuning {
            objective: Objective::Uncached,
            candidates: 6,
            threads,
            ..Tuning::default()
        };
        let start = SchedulerConfig::default();
        tune(&workload, &four_pods(), &start, &tuning, &|_| {}).unwrap()
    };
    assert_eq!(find(1), find(3));
}

/// One system prompt for all, and behind it a document of a group: only who looks past the first tells groups apart.
fn shared_by_all() -> Workload {
    use sim::replay::{Content, Segment};
    let mut workload = generate(Generator::SharedPrefix, 160, 2.5, 10);
    for request in &mut workload.requests {
        if let Content::Made { segments, .. } = &mut request.content {
            segments[0].tokens = 6_000;
            let common = Segment {
                seed: 1,
                tokens: 6_000,
            };
            segments.insert(0, common);
        }
    }
    workload
}

#[test]
fn what_was_found_is_measured_on_the_held_out_requests_behind_all_others() {
    // Conversations: whoever forgets what came before must compute it again.
    let workload = generate(Generator::Chat, 160, 6.0, 5);
    let tuning = Tuning {
        held_out: 0.25,
        ..Tuning::default()
    };
    let tuned = search(&workload, &four_pods(), tuning).unwrap();
    assert_eq!(tuned.held_out, 40);
    let trials = [&tuned.start, &tuned.best];
    let others = tuned.changes.iter().map(|change| &change.without);
    for trial in trials.into_iter().chain(others) {
        assert_eq!(trial.runs.len(), 3);
        for run in &trial.runs {
            assert_eq!((run.summary.requests, run.summary.failed), (40, 0));
        }
    }
    let mut alone = workload.clone();
    alone.requests.drain(..120);
    let alone = Workload::new("the last ones", alone.requests).unwrap();
    let config = SchedulerConfig::default();
    let choice = Choice::Plugins(&config);
    let cold = replay("", &alone, &four_pods(), choice, &mut |_| {}).unwrap();
    let warm = tuned.start.mean(|run| run.summary.cached_percent());
    assert!(
        warm > cold.summary.cached_percent() + 10.0,
        "{warm} {}",
        cold.summary.cached_percent()
    );
}

#[test]
fn a_search_that_could_not_measure_is_refused() {
    let mut workload = generate(Generator::NoSharing, 96, 6.0, 1);
    let refused =
        |workload: &Workload| search(workload, &four_pods(), Tuning::default()).unwrap_err();
    assert_eq!(
        refused(&workload).to_string(),
        "only 29 of 96 requests are held out: that is too few to measure on, 30 are needed"
    );
    workload.requests.truncate(1);
    assert!(matches!(
        refused(&workload),
        SetupError::HeldOut { requests: 1, .. }
    ));
}
