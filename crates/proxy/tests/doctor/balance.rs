//! Where requests go.

use crate::support::{checks, decision, healthy, prompts, the};
use proxy::doctor::Answers;
use serde_json::{Value, json};

/// Every prompt matches all that is hashed (8,192 bytes) on both pods, and requests go to both.
fn spread(prompts: Value) -> Answers {
    let mut answers = healthy();
    let pods = ["default/a", "default/b"];
    let decisions: Vec<_> = (0..20).map(|n| decision(pods[n % 2], 32, 32)).collect();
    answers.decisions = json!({"decisions": decisions});
    answers.prompts = prompts;
    answers
}

#[test]
fn i5_coverage_that_is_too_short_names_the_blocks_that_reach_further() {
    let finding = the("coverage", spread(prompts(20_000, 10_000, 10_000)));
    assert!(
        finding.advice.contains("maxBlocksToMatch: 224 (from 128)"),
        "{finding:?}"
    );
    assert_eq!(
        checks(spread(prompts(20_000, 0, 10_000))),
        ["coverage"],
        "several applications, each with a shared part of its own"
    );
    assert_eq!(
        checks(spread(prompts(20_000, 8000, 8000))),
        [""; 0],
        "they differ within it"
    );
    assert_eq!(
        checks(spread(prompts(10_000, 10_000, 10_000))),
        [""; 0],
        "they are all equal"
    );
    let mut one_pod = spread(prompts(20_000, 10_000, 12_000));
    one_pod.decisions = json!({"decisions": vec![decision("default/a", 32, 32); 20]});
    assert_eq!(checks(one_pod), [""; 0], "all go to one pod");
    let mut told_apart = spread(prompts(20_000, 0, 12_000));
    let decisions: Vec<_> = (0..20)
        .map(|n| match n % 2 {
            0 => decision("default/a", 32, 0),
            _ => decision("default/b", 0, 32),
        })
        .collect();
    told_apart.decisions = json!({"decisions": decisions});
    assert_eq!(checks(told_apart), [""; 0], "each has a pod of its own");
    let mut low = spread(prompts(20_000, 10_000, 12_000));
    let decisions: Vec<_> = (0..20)
        .map(|n| decision(["default/a", "default/b"][n % 2], 20, 20))
        .collect();
    low.decisions = json!({"decisions": decisions});
    assert_eq!(checks(low), [""; 0], "the ratio is not near 1");
}

/// Pod a has the prefix; b is chosen, because of this lead of gpu-usage.
fn loses(lead: u64, times: usize) -> Answers {
    let mut answers = healthy();
    let mut lost = decision("default/b", 24, 0);
    lost["candidates"][0]["scores"]["gpu-usage"] = (100 - lead).into();
    for n in 0..times {
        answers.decisions["decisions"][n] = lost.clone();
    }
    answers
}

#[test]
fn i5_weights_that_outvote_the_prefix_name_the_plugin() {
    let finding = the("outvoted", loses(90, 20));
    assert!(
        finding.title.starts_with("gpu-usage outvotes prefix-cache"),
        "{finding:?}"
    );
    // A lead of 90 against 75 points of prefix-cache.
    assert!(finding.advice.contains("from 1 to 2"), "{finding:?}");
    assert_eq!(checks(loses(90, 4)), [""; 0], "an exception");
    let mut small = loses(90, 20);
    for decision in small.decisions["decisions"].as_array_mut().unwrap() {
        decision["candidates"][1]["matchedBlocks"] = 20.into();
    }
    assert_eq!(checks(small), [""; 0], "the other one has nearly as much");
    let mut failed = loses(90, 20);
    for decision in failed.decisions["decisions"].as_array_mut().unwrap() {
        decision["attempt"] = 2.into();
    }
    assert_eq!(checks(failed), [""; 0], "the first pod failed");
}

#[test]
fn i5_the_weight_is_that_for_the_holder_that_came_nearest() {
    let mut answers = loses(90, 20);
    for decision in answers.decisions["decisions"].as_array_mut().unwrap() {
        // The best ones stand first: the chosen one, this holder, and one that is worse.
        let all = decision["candidates"].as_array_mut().unwrap();
        all.reverse();
        let mut nearer = all[1].clone();
        nearer["pod"] = "default/c".into();
        all[1]["scores"]["gpu-usage"] = 0.into();
        all[1]["scores"]["least-request"] = 0.into();
        all.insert(1, nearer);
    }
    let finding = the("outvoted", answers);
    assert!(finding.advice.contains("from 1 to 2"), "{finding:?}");
}

#[test]
fn i5_pods_that_are_filtered_out() {
    let with = |times: usize, filter: &str| {
        let mut answers = healthy();
        for n in 0..times {
            answers.decisions["decisions"][n]["filtered"] = json!({filter: 2});
        }
        checks(answers)
    };
    assert_eq!(with(15, "least-request"), ["filtered"]);
    assert_eq!(with(9, "least-request"), [""; 0]);
    assert_eq!(with(20, "lora-affinity"), [""; 0], "as it is meant to");
}

/// Of a large fleet only the best candidates are told: those that are missing were not filtered.
#[test]
fn i5_candidates_come_and_go_in_a_large_fleet() {
    let mut answers = healthy();
    for n in 0..20 {
        let one = &mut answers.decisions["decisions"][n]["candidates"];
        one[1]["pod"] = format!("default/{n}").into();
    }
    assert_eq!(checks(answers), [""; 0]);
}
