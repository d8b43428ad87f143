//! The match ratio, and the lists behind it.

use crate::support::{checks, decision, facts, healthy, page, prompts, replica, the};
use proxy::doctor::{Answers, Facts, Severity, examine};
use serde_json::{Value, json};

/// Nothing has matched, and this is what prompts share.
fn never(prompts: Value) -> Answers {
    let mut answers = healthy();
    answers.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 20]});
    answers.prompts = prompts;
    answers
}

#[test]
fn i5_always_0_names_the_byte_at_which_prompts_differ() {
    let finding = the("always-0-diverging", never(prompts(2000, 27, 47)));
    assert!(finding.title.contains("byte 47"), "{finding:?}");
    assert_eq!(finding.severity, Severity::Problem);
    // Prompts that share a block will match.
    assert_eq!(
        checks(never(prompts(2000, 27, 64))),
        ["always-0-first-seen"]
    );
    // Prompts that are one short text have no more to share.
    assert_eq!(checks(never(prompts(40, 40, 40))), ["always-0-first-seen"]);
    let mut few = never(prompts(2000, 27, 47));
    few.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 9]});
    assert_eq!(checks(few), [""; 0], "too few");
    let mut one = never(prompts(2000, 27, 47));
    one.decisions["decisions"][7] = decision("default/a", 1, 0);
    assert_eq!(checks(one), ["low-short-shared-part"], "not always");
}

#[test]
fn i5_always_0_because_requests_fail() {
    let mut answers = never(prompts(2000, 1500, 1600));
    for n in 0..11 {
        answers.decisions["decisions"][n]["status"] = 502.into();
    }
    assert_eq!(checks(answers.clone()), ["always-0-failing"]);
    answers.decisions["decisions"][0]["status"] = 200.into();
    assert_eq!(
        checks(answers),
        ["always-0-first-seen"],
        "half of them succeed"
    );
}

#[test]
fn i5_a_low_ratio_is_as_expected_where_prompts_share_little() {
    let with = |matched: u64, prompts: Value| {
        let mut answers = healthy();
        answers.decisions = json!({"decisions": vec![decision("default/a", matched, 0); 20]});
        answers.prompts = prompts;
        checks(answers)
    };
    assert_eq!(with(2, prompts(2000, 128, 140)), ["low-short-shared-part"]);
    assert_eq!(
        with(2, prompts(2000, 1500, 1600)),
        [""; 0],
        "they share much"
    );
    assert_eq!(
        with(20, prompts(2000, 128, 140)),
        [""; 0],
        "the ratio is not low"
    );
}

#[test]
fn i5_a_low_ratio_is_as_expected_after_a_restart() {
    let with = |uptime: f64, ratio: f64| {
        let mut answers = healthy();
        answers.router["uptimeSeconds"] = uptime.into();
        answers.prefix["ratio"]["15m"]["ratio"] = ratio.into();
        checks(answers)
    };
    assert_eq!(with(60.0, 0.3), ["restarted"]);
    assert_eq!(with(60.0, 0.8), [""; 0]);
    assert_eq!(with(6000.0, 0.3), [""; 0]);
}

#[test]
fn i5_pinned_requests_are_not_scored() {
    let mut answers = healthy();
    for n in 0..11 {
        answers.decisions["decisions"][n]["pinned"] = true.into();
    }
    assert_eq!(checks(answers.clone()), ["pinned"]);
    answers.decisions["decisions"][0]["pinned"] = false.into();
    assert_eq!(checks(answers), [""; 0]);
}

/// Lists of 1,000 entries, three thousand of which were dropped by pod a and one by pod b.
fn evicting(ratio: f64) -> Answers {
    let mut answers = healthy();
    let prefix = &mut answers.prefix;
    prefix["configuration"]["maxHashCacheSize"] = 1000.into();
    prefix["pods"] = json!([{"pod": "default/a", "entries": 1000, "capacity": 1000, "evictions": 3000},
        {"pod": "default/b", "entries": 1000, "capacity": 1000, "evictions": 1000}]);
    prefix["evictions"] = 4000.into();
    prefix["ratio"]["5m"]["ratio"] = ratio.into();
    prefix["ratio"]["15m"] =
        json!({"requests": 500, "matchedBlocks": 500, "hashedBlocks": 4500, "ratio": 0.1});
    answers
}

fn evicting_facts(ratio: f64, before: u32, now: u32) -> Facts {
    let mut facts = facts(evicting(ratio));
    facts.replicas = vec![replica(page(100, 0.1, before), page(200, 0.1, now))];
    facts
}

#[test]
fn i5_evictions_that_grow_with_a_low_ratio_name_the_size_that_would_do() {
    let all = examine(&evicting_facts(0.1, 3900, 4000));
    let finding = all.iter().find(|f| f.check == "evictions").unwrap();
    // Three quarters of 4000 new blocks, less than the 4000 that the pod would have had since the start.
    assert!(
        finding
            .advice
            .contains("maxHashCacheSize: 3000 (from 1000)"),
        "{finding:?}"
    );
    assert!(finding.evidence.contains("100 of them"), "{finding:?}");
    let silent = |facts: &Facts| !examine(facts).iter().any(|f| f.check == "evictions");
    assert!(
        silent(&evicting_facts(0.6, 3900, 4000)),
        "the ratio is fine"
    );
    assert!(silent(&evicting_facts(0.1, 4000, 4000)), "they do not grow");
}

#[test]
fn i5_several_replicas_with_a_low_ratio() {
    let with = |requests: u32, ratio: f64| {
        let mut facts = facts(healthy());
        let one = replica(page(0, 0.0, 0), page(requests, ratio, 0));
        facts.replicas = vec![one.clone(), one];
        let found: Vec<_> = examine(&facts).iter().map(|f| f.check).collect();
        found
    };
    assert_eq!(with(50, 0.4), ["replicas"]);
    assert_eq!(with(50, 0.9), [""; 0], "the ratio is fine");
    assert_eq!(with(5, 0.4), [""; 0], "too few requests");
    let mut alone = facts(healthy());
    alone.replicas = vec![replica(page(0, 0.0, 0), page(50, 0.4, 0))];
    assert!(examine(&alone).is_empty(), "one replica");
}
