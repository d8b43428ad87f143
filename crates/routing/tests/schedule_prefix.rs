//! prefix-cache: scores, recording, eviction, and what is seen of it from outside.

mod schedule_support;

use prefix_index::Chain;
use routing::fleet::{ModelServer, PodId};
use routing::prompt::Prompt;
use routing::schedule::{Ask, Memo, Recorded, Scheduler, Unobserved};
use schedule_support::{Seen, configured, ids, plan, pod, scheduler, server};
use serde_json::json;

/// A scheduler with prefix-cache alone and this many idle pods.
fn fleet(pods: u32) -> (Scheduler, ModelServer) {
    let scheduler = scheduler(&[], &["prefix-cache"]);
    (0..pods).for_each(|id| scheduler.admit(PodId(id)));
    (scheduler, server((0..pods).map(pod).collect()))
}

/// Plans a request and lets a pod serve it.
fn serve(scheduler: &Scheduler, server: &ModelServer, prompt: &str, pod: u32) -> Recorded {
    let plan = plan(scheduler, server, prompt, 0).0.expect("a plan");
    scheduler.served(&plan.memo.expect("a memo"), PodId(pod))
}

fn scores(scheduler: &Scheduler, server: &ModelServer, prompt: &str) -> Vec<u8> {
    plan(scheduler, server, prompt, 0).1.by("prefix-cache")
}

/// A prompt whose first `same` blocks are `x` and whose others are `y`.
fn prompt(blocks: usize, same: usize) -> String {
    format!(
        "{}{}",
        "x".repeat(64 * same),
        "y".repeat(64 * (blocks - same))
    )
}

#[test]
fn i1_the_second_time_the_pod_that_served_the_first_scores_100() {
    let (scheduler, server) = fleet(3);
    assert_eq!(scores(&scheduler, &server, "Answer briefly."), [0, 0, 0]);
    serve(&scheduler, &server, "Answer briefly.", 1);
    assert_eq!(scores(&scheduler, &server, "Answer briefly."), [0, 100, 0]);
    assert_eq!(
        ids(&plan(&scheduler, &server, "Answer briefly.", 9)
            .0
            .expect("a plan"))[0],
        1
    );
}

#[test]
fn c3_score_is_floor_of_matched_over_hashed() {
    // The four of at most 128 blocks at which floating point would give one less.
    for (matched, hashed, score) in [
        (24, 32, 75),
        (29, 100, 29),
        (29, 50, 58),
        (57, 100, 57),
        (58, 100, 58),
        (1, 128, 0),
        (127, 128, 99),
    ] {
        let (scheduler, server) = fleet(1);
        serve(&scheduler, &server, &prompt(matched, matched), 0);
        assert_eq!(
            scores(&scheduler, &server, &prompt(hashed, matched)),
            [score],
            "{matched} of {hashed}"
        );
    }
}

#[test]
fn c4_a_prompt_of_2000_bytes_has_32_blocks() {
    let (scheduler, server) = fleet(1);
    let (_, seen) = plan(&scheduler, &server, &"x".repeat(2000), 0);
    assert_eq!(seen.matches.expect("matches").hashes.len(), 32);
}

#[test]
fn c1_c5_only_candidates_take_places_and_only_top_k_score() {
    let (scheduler, all) = fleet(8);
    for id in 0..8 {
        serve(&scheduler, &all, &prompt(4, 4), id);
    }
    assert_eq!(
        scores(&scheduler, &all, &prompt(4, 4))
            .iter()
            .filter(|&&s| s == 100)
            .count(),
        5
    );
    let few = server((2..6).map(pod).collect());
    assert_eq!(scores(&scheduler, &few, &prompt(4, 4)), [100; 4]);
}

#[test]
fn c6_winners_among_equals_change_with_the_draw() {
    let (scheduler, server) = fleet(8);
    for id in 0..8 {
        serve(&scheduler, &server, "shared", id);
    }
    let mut wins = [0; 8];
    for draw in 0..800 {
        let (_, seen) = plan(&scheduler, &server, "shared", draw);
        seen.scores["prefix-cache"]
            .iter()
            .filter(|(_, s)| **s == 100)
            .for_each(|(id, _)| wins[*id as usize] += 1);
    }
    // Expected 500 each, standard deviation 14.
    assert!(wins.iter().all(|n| (430..570).contains(n)), "{wins:?}");
}

#[test]
fn c7_an_empty_prompt_is_not_scored_and_all_pods_are_equal() {
    let (scheduler, server) = fleet(3);
    let (result, seen) = plan(&scheduler, &server, "", 0);
    let result = result.expect("never an error");
    assert!(result.memo.is_none(), "nothing to record");
    assert_eq!(result.attempts.len(), 3);
    assert_eq!(seen.steps, ["started", "prefix-cache abstained", "totals"]);
    let firsts: std::collections::BTreeSet<_> = (0..50)
        .map(|draw| ids(&plan(&scheduler, &server, "", draw).0.expect("a plan"))[0])
        .collect();
    assert_eq!(firsts.len(), 3);
}

#[test]
fn c8_d2_decode_and_prefill_pods_are_scored_in_separate_passes_and_both_recorded() {
    let (scheduler, all) = fleet(4);
    let (decode, prefill) = all.pods().split_at(2);
    let text = Prompt::from_text("hello");
    let ask = Ask {
        model: "m",
        prompt: &text,
        draw: 0,
    };
    let pass = |pods| {
        let mut seen = Seen::default();
        let plan = scheduler.plan_among(&ask, pods, &mut seen).expect("a plan");
        (plan.memo.expect("a memo"), seen.by("prefix-cache"))
    };
    let (memo, _) = pass(decode);
    scheduler.served(&memo, PodId(1));
    scheduler.served(&memo, PodId(2));
    assert_eq!(pass(decode).1, [0, 100]);
    assert_eq!(pass(prefill).1, [100, 0]);
}

#[test]
fn d1_d3_planning_records_nothing_and_success_records_the_hashes() {
    let (scheduler, server) = fleet(2);
    let plan = plan(&scheduler, &server, &prompt(3, 3), 0)
        .0
        .expect("a plan");
    assert_eq!(scheduler.prefix_entries(), 0);
    let memo = plan.memo.expect("a memo");
    assert_eq!(
        scheduler.served(&memo, PodId(0)),
        Recorded {
            added: 3,
            refreshed: 0,
            evicted: 0
        }
    );
    assert_eq!(
        scheduler.served(&memo, PodId(0)),
        Recorded {
            added: 0,
            refreshed: 3,
            evicted: 0
        }
    );
    assert_eq!(scheduler.prefix_entries(), 3);
    let mut chain = Chain::new("m", 64, 128);
    let _ = chain.push(prompt(3, 3).as_bytes());
    assert_eq!(memo, Memo::Prefix(chain.finish()));
}

#[test]
fn b6_the_same_text_for_another_model_matches_nothing() {
    let (scheduler, server) = fleet(1);
    serve(&scheduler, &server, "hello", 0);
    let text = Prompt::from_text("hello");
    let mut seen = Seen::default();
    scheduler
        .plan(
            &Ask {
                model: "other",
                prompt: &text,
                draw: 0,
            },
            &server,
            &mut seen,
        )
        .expect("a plan");
    assert_eq!(seen.by("prefix-cache"), [0]);
}

#[test]
fn d7_e4_a_deleted_pod_leaves_nothing_behind() {
    let (scheduler, server) = fleet(2);
    serve(&scheduler, &server, &prompt(3, 3), 0);
    serve(&scheduler, &server, &prompt(3, 3), 1);
    assert_eq!(scheduler.forget(PodId(0)), 3);
    assert_eq!(
        serve(&scheduler, &server, &prompt(3, 3), 0),
        Recorded::default()
    );
    assert_eq!(scheduler.prefix_entries(), 3);
    assert_eq!(scores(&scheduler, &server, &prompt(3, 3)), [0, 100]);
}

#[test]
fn e1_e2_e5_arguments_bound_what_a_pod_keeps() {
    let args = json!({"blockSizeToHash": 4, "maxBlocksToMatch": 6, "maxHashCacheSize": 8, "topKMatches": 1});
    let scheduler = configured(
        &[],
        &[("prefix-cache", 1)],
        json!([{"name": "prefix-cache", "args": args}]),
    );
    (0..2).for_each(|id| scheduler.admit(PodId(id)));
    let server = server((0..2).map(pod).collect());
    assert_eq!(
        serve(&scheduler, &server, &"a".repeat(100), 0),
        Recorded {
            added: 6,
            refreshed: 0,
            evicted: 0
        }
    );
    assert_eq!(
        serve(&scheduler, &server, &"b".repeat(100), 0),
        Recorded {
            added: 6,
            refreshed: 0,
            evicted: 4
        }
    );
    assert_eq!(
        scores(&scheduler, &server, &"a".repeat(100)),
        [33, 0],
        "the first two of six blocks are left"
    );
    serve(&scheduler, &server, &"b".repeat(100), 1);
    assert_eq!(scheduler.prefix_entries(), 14);
    assert_eq!(
        scores(&scheduler, &server, &"b".repeat(100))
            .iter()
            .filter(|&&s| s > 0)
            .count(),
        1,
        "topKMatches"
    );
}

#[test]
fn f9_a_new_scheduler_has_an_empty_cache() {
    let (scheduler, server) = fleet(1);
    serve(&scheduler, &server, "hello", 0);
    assert_eq!(fleet(1).0.prefix_entries(), 0);
}

#[test]
fn i2_a_busy_pod_can_lose_to_an_idle_one() {
    let scheduler = configured(&[], &[("prefix-cache", 1), ("least-request", 2)], json!([]));
    (0..2).for_each(|id| scheduler.admit(PodId(id)));
    let server = server((0..2).map(pod).collect());
    serve(&scheduler, &server, "hello", 0);
    assert_eq!(
        ids(&plan(&scheduler, &server, "hello", 0).0.expect("a plan")),
        [0, 1]
    );
    let _busy: Vec<_> = (0..3).map(|_| server.pods()[0].begin()).collect();
    let (plan, seen) = plan(&scheduler, &server, "hello", 0);
    assert_eq!(seen.by("prefix-cache"), [100, 0]);
    assert_eq!(ids(&plan.expect("a plan")), [1, 0]);
}

#[test]
fn i4_a_value_per_request_near_the_start_breaks_the_prefix() {
    let (scheduler, server) = fleet(1);
    let rest = "y".repeat(1000);
    serve(&scheduler, &server, &format!("12:00:01 {rest}"), 0);
    assert_eq!(
        scores(&scheduler, &server, &format!("12:00:02 {rest}")),
        [0]
    );
    serve(&scheduler, &server, &format!("{rest} 12:00:01"), 0);
    assert_eq!(
        scores(&scheduler, &server, &format!("{rest} 12:00:02")),
        [93]
    );
}

#[test]
fn i5_coverage_shorter_than_the_shared_part_makes_all_prompts_look_the_same() {
    let (scheduler, server) = fleet(2);
    let system = "s".repeat(8192);
    serve(&scheduler, &server, &format!("{system}first"), 0);
    serve(&scheduler, &server, &format!("{system}second"), 1);
    assert_eq!(
        scores(&scheduler, &server, &format!("{system}third")),
        [100, 100]
    );
    let args = json!([{"name": "prefix-cache", "args": {"maxBlocksToMatch": 256}}]);
    let wider = configured(&[], &[("prefix-cache", 1)], args);
    (0..2).for_each(|id| wider.admit(PodId(id)));
    serve(&wider, &server, &format!("{system}first"), 0);
    assert_eq!(scores(&wider, &server, &format!("{system}first")), [100, 0]);
    assert_eq!(scores(&wider, &server, &format!("{system}third")), [99, 0]);
}

#[test]
fn without_the_plugin_nothing_is_recorded() {
    let scheduler = scheduler(&[], &["gpu-usage"]);
    scheduler.admit(PodId(0));
    let plan = plan(&scheduler, &server(vec![pod(0)]), "hello", 0)
        .0
        .expect("a plan");
    assert!(plan.memo.is_none());
    assert_eq!(
        (scheduler.prefix_entries(), scheduler.forget(PodId(0))),
        (0, 0)
    );
    let text = Prompt::from_text("hello");
    let again = scheduler.plan(
        &Ask {
            model: "m",
            prompt: &text,
            draw: 0,
        },
        &server(vec![pod(0)]),
        &mut Unobserved,
    );
    assert!(again.is_ok());
}

#[test]
fn c8_the_order_of_the_callers_pods_does_not_matter() {
    let (scheduler, all) = fleet(9);
    serve(&scheduler, &all, "hello", 8);
    serve(&scheduler, &all, "hello", 1);
    let text = Prompt::from_text("hello");
    let ask = Ask {
        model: "m",
        prompt: &text,
        draw: 0,
    };
    let reversed: Vec<_> = all.pods().iter().rev().cloned().collect();
    let mut seen = Seen::default();
    scheduler
        .plan_among(&ask, &reversed, &mut seen)
        .expect("a plan");
    assert_eq!(seen.by("prefix-cache"), [0, 100, 0, 0, 0, 0, 0, 0, 100]);
}
