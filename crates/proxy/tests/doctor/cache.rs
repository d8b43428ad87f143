//! The match ratio, and the lists behind it.

use crate::support::{checks, decision, facts, healthy, page, prompts, replica, the};
use proxy::doctor::{Answers, Severity, examine};
use serde_json::{Value, json};

/// Nothing has matched, and this is what prompts share.
fn never(prompts: Value) -> Answers {
    let mut answers = healthy();
    answers.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 20]});
    answers.prompts = prompts;
    answers
}

/// Prompts that differ from this byte on, so many of which are the same again soon after.
fn dated(from: u64, samples: u64) -> Value {
    let mut prompts = prompts(2000, from, from);
    prompts["models"][0]["resumes"] = json!({"samples": samples, "from": from, "after": 19});
    prompts
}

#[test]
fn i5_always_0_names_the_byte_at_which_prompts_differ() {
    let finding = the("always-0-diverging", never(dated(47, 30)));
    assert!(finding.title.contains("byte 47"), "{finding:?}");
    assert_eq!(finding.severity, Severity::Problem);
    let mut few = never(dated(47, 30));
    few.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 9]});
    assert_eq!(checks(few), [""; 0], "too few");
}

#[test]
fn i4_what_changes_after_the_first_block_is_found_as_well() {
    let low = |matched: u64, prompts: Value| {
        let mut answers = healthy();
        answers.decisions = json!({"decisions": vec![decision("default/a", matched, 0); 20]});
        answers.prompts = prompts;
        answers
    };
    let finding = the("low-diverging", low(1, dated(82, 30)));
    assert!(finding.title.contains("low") && finding.title.contains("byte 82"));
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        checks(low(1, dated(82, 16))),
        ["low-short-shared-part"],
        "half of them only"
    );
    assert_eq!(checks(low(20, dated(1400, 30))), [""; 0], "late enough");
}

#[test]
fn i5_prompts_that_have_nothing_in_common_are_as_expected() {
    let finding = the("always-0-different", never(prompts(2000, 0, 1)));
    assert_eq!(finding.severity, Severity::Note);
    assert_eq!(
        checks(never(prompts(40, 40, 40))),
        ["always-0-different"],
        "shorter than a block"
    );
    // Prompts that share a block will match.
    assert_eq!(
        checks(never(prompts(2000, 27, 64))),
        ["always-0-first-seen"]
    );
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

/// Lists of 1,000 entries that drop 100 in five minutes; three quarters of all went to pod a.
fn evicting(ratio: f64, evictions: u64, again: f64) -> Answers {
    let mut answers = healthy();
    let prefix = &mut answers.prefix;
    prefix["configuration"]["maxHashCacheSize"] = 1000.into();
    prefix["pods"] = json!([{"pod": "default/a", "entries": 1000, "capacity": 1000, "evictions": 5000},
        {"pod": "default/b", "entries": 1000, "capacity": 1000, "evictions": 1000}]);
    prefix["evictions"] = 6000.into();
    prefix["ratio"]["5m"]["ratio"] = ratio.into();
    prefix["ratio"]["5m"]["evictions"] = evictions.into();
    prefix["workingSet"] = json!({"blocks": 4000, "again": again});
    answers
}

#[test]
fn i5_evictions_that_grow_with_a_low_ratio_name_the_size_that_would_do() {
    let finding = the("evictions", evicting(0.1, 100, 0.8));
    // Three quarters of 4000 blocks, and a quarter of that.
    assert!(
        finding
            .advice
            .contains("maxHashCacheSize: 3800 (from 1000)"),
        "{finding:?}"
    );
    assert!(finding.evidence.starts_with("100 evictions"), "{finding:?}");
    assert_eq!(
        checks(evicting(0.6, 100, 0.8)),
        [""; 0],
        "the ratio is fine"
    );
    assert_eq!(checks(evicting(0.1, 0, 0.8)), [""; 0], "they do not grow");
}

#[test]
fn i5_longer_lists_are_not_advised_for_what_is_asked_for_once() {
    let finding = the("evictions-of-what-is-new", evicting(0.1, 100, 0.01));
    assert_eq!(finding.severity, Severity::Note);
    assert!(!finding.advice.contains("Set maxHashCacheSize"));
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
    let mut slow = facts(healthy());
    let one = replica(page(50, 0.4, 0), page(53, 0.4, 0));
    slow.replicas = vec![one.clone(), one];
    let found = examine(&slow);
    assert_eq!(found[0].check, "replicas", "a request a second");
    let mut alone = facts(healthy());
    alone.replicas = vec![replica(page(0, 0.0, 0), page(50, 0.4, 0))];
    assert!(examine(&alone).is_empty(), "one replica");
}
