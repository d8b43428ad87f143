//! Totals, ties, errors, and what an observer sees.

mod schedule_support;

use proptest::prelude::*;
use routing::fleet::{Gauges, PodId};
use routing::prompt::Prompt;
use routing::schedule::{
    Ask, FilterPlugin, MAX_ATTEMPTS, Row, ScheduleError, Scheduler, Score, ScorePlugin, Unobserved,
    Verdict,
};
use schedule_support::{Seen, configured, ids, known, plan, pod, scheduler, server, waiting};
use std::collections::BTreeMap;

/// Scores a pod by a table, and writes nothing for pods that are not in it.
#[derive(Debug)]
struct Table(&'static str, BTreeMap<u32, u64>);

impl ScorePlugin for Table {
    fn name(&self) -> &'static str {
        self.0
    }

    fn score(&self, _: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        for (row, out) in rows.iter().zip(out) {
            if let Some(&score) = self.1.get(&row.pod.id.0) {
                *out = Score::new(score);
            }
        }
        Verdict::Scored
    }
}

fn table(name: &'static str, scores: &[u64]) -> Box<dyn ScorePlugin> {
    Box::new(Table(name, (0..).zip(scores.iter().copied()).collect()))
}

#[derive(Debug)]
struct Even;

impl FilterPlugin for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn keep(&self, _: &Ask<'_>, row: &Row<'_>) -> bool {
        row.pod.id.0.is_multiple_of(2)
    }
}

#[test]
fn c9_total_is_the_sum_of_score_times_weight() {
    let scheduler = Scheduler::with_plugins(
        vec![],
        vec![
            (table("a", &[10, 100, 0]), 3),
            (table("b", &[100, 20, 7]), 2),
        ],
    );
    let (plan, seen) = plan(&scheduler, &server((0..3).map(pod).collect()), "", 0);
    assert_eq!(
        seen.totals.into_values().collect::<Vec<_>>(),
        [230, 340, 14]
    );
    assert_eq!(ids(&plan.expect("a plan")), [1, 0, 2]);
}

#[test]
fn c9_scores_are_clamped_to_100() {
    assert_eq!(
        [0, 100, 101, u64::MAX].map(|s| Score::new(s).get()),
        [0, 100, 100, 100]
    );
    let floats = [-1.0, f64::NAN, 99.999, 100.4, f64::INFINITY];
    assert_eq!(
        floats.map(|s| Score::truncated(s).get()),
        [0, 0, 99, 100, 100]
    );
    assert_eq!(Score::ratio(u64::MAX, u64::MAX).get(), 100);
    assert_eq!(Score::ratio(3, 0).get(), 0);
}

#[test]
fn c9_the_greatest_weights_do_not_overflow() {
    let weight = i64::MAX;
    let names = [
        "least-request",
        "gpu-usage",
        "least-latency",
        "prefix-cache",
    ];
    let scheduler = configured(
        &[],
        &names.map(|name| (name, weight)),
        serde_json::json!([]),
    );
    let idle = Gauges {
        ttft: 0.1,
        tpot: 0.1,
        ..Gauges::default()
    };
    let (_, seen) = plan(&scheduler, &server(vec![known(0, idle)]), "hello", 0);
    assert_eq!(
        seen.totals[&0],
        300 * u128::try_from(weight).expect("positive")
    );
}

#[test]
fn c10_ties_of_the_total_are_spread() {
    let scheduler = scheduler(&[], &[]);
    let server = server((0..8).map(pod).collect());
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    let mut second: BTreeMap<u32, u32> = BTreeMap::new();
    for draw in 0..8000 {
        let ids = ids(&plan(&scheduler, &server, "x", draw).0.expect("a plan"));
        *first.entry(ids[0]).or_default() += 1;
        *second.entry(ids[1]).or_default() += 1;
    }
    // Expected 1000 each; 150 are five standard deviations.
    for counts in [first, second] {
        assert!(
            counts.len() == 8 && counts.values().all(|n| (850..1150).contains(n)),
            "{counts:?}"
        );
    }
}

#[test]
fn the_same_input_gives_the_same_plan() {
    let scheduler = scheduler(&["least-request"], &["least-request", "prefix-cache"]);
    let server = server((0..20).map(pod).collect());
    for draw in 0..20 {
        let once = plan(&scheduler, &server, "x", draw).0.expect("a plan");
        assert_eq!(
            ids(&once),
            ids(&plan(&scheduler, &server, "x", draw).0.expect("a plan"))
        );
    }
}

#[test]
fn i3_a_backed_up_pod_is_removed_whatever_the_weights() {
    let scheduler = configured(
        &["least-request"],
        &[("prefix-cache", i64::MAX)],
        serde_json::json!([]),
    );
    let server = server(vec![waiting(0, 10), waiting(1, 9), waiting(2, 11)]);
    for id in 0..3 {
        scheduler.admit(PodId(id));
    }
    let first = plan(&scheduler, &server, "hello", 0).0.expect("a plan");
    scheduler.served(&first.memo.expect("a memo"), PodId(0));
    let (plan, seen) = plan(&scheduler, &server, "hello", 0);
    assert_eq!(ids(&plan.expect("a plan")), [1]);
    assert_eq!(
        seen.filtered_by,
        BTreeMap::from([(0, "least-request"), (2, "least-request")])
    );
}

#[test]
fn j1_error_names_the_filter_that_dropped_the_last_pod() {
    let scheduler = scheduler(&["least-request", "lora-affinity"], &["gpu-usage"]);
    let all_busy = plan(&scheduler, &server(vec![waiting(0, 10)]), "", 0)
        .0
        .expect_err("no pod");
    assert_eq!(
        all_busy.to_string(),
        r#"pods have all been filtered out by "least-request""#
    );
    let without = waiting(0, 0);
    without.load.set_models(vec!["base".into()]);
    let no_adapter = plan(&scheduler, &server(vec![without]), "", 0)
        .0
        .expect_err("no pod");
    assert_eq!(
        no_adapter.to_string(),
        r#"pods have all been filtered out by "lora-affinity""#
    );
    let nobody = plan(&scheduler, &server(vec![]), "", 0)
        .0
        .expect_err("no pod");
    assert_eq!(nobody, ScheduleError::NoPods);
}

#[test]
fn a_plugin_that_leaves_a_pod_without_a_score_is_found_out() {
    let scheduler = Scheduler::with_plugins(vec![], vec![(table("forgetful", &[1, 2]), 1)]);
    let (result, _) = plan(&scheduler, &server((0..3).map(pod).collect()), "", 0);
    assert_eq!(
        result.expect_err("a defect"),
        ScheduleError::Unscored {
            plugin: "forgetful"
        }
    );
}

#[test]
fn filters_run_in_order_and_scores_see_only_what_is_left() {
    let scheduler =
        Scheduler::with_plugins(vec![Box::new(Even)], vec![(table("a", &[1, 2, 3, 4]), 1)]);
    let (plan, seen) = plan(&scheduler, &server((0..4).map(pod).collect()), "", 0);
    assert_eq!(ids(&plan.expect("a plan")), [2, 0]);
    assert_eq!(seen.scores["a"], BTreeMap::from([(0, 1), (2, 3)]));
    assert_eq!(seen.filtered_by, BTreeMap::from([(1, "even"), (3, "even")]));
}

#[test]
fn h1_an_observer_sees_every_step_in_order() {
    let scheduler = scheduler(&["least-request"], &["gpu-usage", "prefix-cache"]);
    let (_, seen) = plan(&scheduler, &server(vec![pod(0)]), &"x".repeat(100), 0);
    let steps = [
        "started",
        "least-request filtered",
        "started",
        "gpu-usage scored",
        "started",
        "prefix-cache scored",
        "0 of 2 matched",
        "totals",
    ];
    assert_eq!(seen.steps, steps);
}

#[test]
fn j2_a_bound_pod_that_survives_the_filters_takes_the_request_without_scores() {
    let scheduler = scheduler(&["least-request"], &["gpu-usage", "prefix-cache"]);
    let prompt = Prompt::from_text("hello");
    let ask = Ask {
        model: "m",
        prompt: &prompt,
        draw: 0,
    };
    let mut seen = Seen::default();
    let plan = scheduler
        .pinned(&ask, &waiting(3, 9), &mut seen)
        .expect("survives");
    assert_eq!(ids(&plan), [3]);
    assert!(plan.memo.is_none(), "d6: nothing to record");
    assert_eq!(
        seen.steps,
        ["started", "least-request filtered"],
        "h2: no scores"
    );
    assert!(
        scheduler
            .pinned(&ask, &waiting(3, 10), &mut Unobserved)
            .is_none()
    );
}

#[test]
fn d6_a_pinned_request_is_recorded_when_the_plugin_was_told_to() {
    let args = serde_json::json!([{"name": "prefix-cache", "args": {"recordSticky": true}}]);
    let scheduler = configured(&[], &[("prefix-cache", 1)], args);
    scheduler.admit(PodId(3));
    let pin = |text: &str| {
        let prompt = Prompt::from_text(text);
        let ask = Ask {
            model: "m",
            prompt: &prompt,
            draw: 0,
        };
        let mut seen = Seen::default();
        let plan = scheduler.pinned(&ask, &pod(3), &mut seen).expect("a plan");
        assert_eq!(seen.steps, [""; 0], "h2: nothing is scored even so");
        plan.memo
    };
    assert_eq!(pin(""), None);
    let memo = pin("hello").expect("a memo");
    scheduler.served(&memo, PodId(3));
    let (_, seen) = plan(&scheduler, &server(vec![pod(3)]), "hello", 0);
    assert_eq!(seen.by("prefix-cache"), [100]);
}

proptest! {
    #[test]
    fn a_plan_is_the_head_of_the_sorted_totals(scores in prop::collection::vec(0u64..6, 1..40), draw in any::<u64>()) {
        let scheduler = Scheduler::with_plugins(vec![], vec![(table("a", &scores), 7)]);
        // Newest first: the order of the caller's list must not matter.
        let pods: Vec<_> = (0..scores.len() as u32).rev().map(pod).collect();
        let prompt = Prompt::from_text("");
        let plan = scheduler.plan_among(&Ask { model: "m", prompt: &prompt, draw }, &pods, &mut Unobserved);
        let ids = ids(&plan.expect("a plan"));
        let mut sorted = scores.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        sorted.truncate(MAX_ATTEMPTS);
        prop_assert_eq!(ids.iter().map(|id| scores[*id as usize]).collect::<Vec<_>>(), sorted);
        let mut distinct = ids.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), ids.len());
    }
}
