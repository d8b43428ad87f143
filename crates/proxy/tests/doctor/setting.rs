//! Configuration and pods.

use crate::support::{checks, healthy, the};
use proxy::doctor::Severity;
use serde_json::{Value, json};

#[test]
fn i5_a_healthy_router_has_nothing_wrong() {
    assert_eq!(checks(healthy()), [""; 0]);
}

#[test]
fn i5_a_router_without_traffic_has_nothing_wrong() {
    let mut answers = healthy();
    answers.decisions = json!({"decisions": []});
    answers.prompts = json!({"models": []});
    let none = json!({"requests": 0, "matchedBlocks": 0, "hashedBlocks": 0, "ratio": null});
    answers.prefix["ratio"] = json!({"1m": none, "5m": none, "15m": none});
    answers.prefix["models"] = json!([]);
    assert_eq!(checks(answers), [""; 0]);
}

#[test]
fn i5_what_was_warned_of_at_the_start() {
    for (kind, check) in [
        ("unknown-argument", "misspelled-argument"),
        ("bad-arguments", "bad-arguments"),
        ("unknown-plugin", "unknown-plugin"),
        ("random-among-others", "configuration"),
    ] {
        let mut answers = healthy();
        answers.router["warnings"] =
            json!([{"kind": kind, "text": "Plugin x has no argument \"y\"."}]);
        let finding = the(check, answers);
        assert_eq!(finding.severity, Severity::Problem);
        assert!(finding.evidence.contains("no argument \"y\""));
        assert!(finding.advice.contains("rollout restart"));
    }
}

#[test]
fn i5_a_configuration_that_waits_for_a_restart() {
    let mut answers = healthy();
    for (changed, found) in [
        (json!(true), &["not-restarted"][..]),
        (json!(false), &[]),
        (Value::Null, &[]),
    ] {
        answers.router["configurationChanged"] = changed;
        assert_eq!(checks(answers.clone()), found);
    }
    answers.router["configurationChanged"] = true.into();
    let advice = the("not-restarted", answers).advice;
    assert!(advice.contains("rollout restart"), "{advice}");
}

#[test]
fn i5_the_plugin_is_not_enabled() {
    let mut answers = healthy();
    answers.router["scores"] = json!([{"name": "gpu-usage", "weight": 1}]);
    answers.prefix = Value::Null;
    let finding = the("not-enabled", answers);
    assert!(finding.evidence.contains("gpu-usage"), "{finding:?}");
}

#[test]
fn pods_whose_metrics_cannot_be_read() {
    let mut answers = healthy();
    answers.pods["pods"][1]["metricsKnown"] = false.into();
    let finding = the("pods-unknown", answers.clone());
    assert!(finding.title.contains("1 of 2") && finding.evidence.contains("default/b"));
    // A router that has just started has not asked yet; one that has asked in vain has.
    answers.router["uptimeSeconds"] = 3.0.into();
    assert_eq!(checks(answers.clone()), ["pods-unknown"]);
    answers.pods["pods"][1]["metricsAgeMs"] = Value::Null;
    assert_eq!(checks(answers), [""; 0]);
}

#[test]
fn no_pod_at_all() {
    let mut answers = healthy();
    answers.pods["pods"] = Value::Null;
    assert_eq!(checks(answers), ["no-pods"]);
}

#[test]
fn engines_that_reuse_nothing() {
    let with = |requests: u64, predicted: f64, actual: Value| {
        let mut answers = healthy();
        answers.prefix["models"] = json!([{"model": "m", "requests": requests, "predicted": predicted, "actual": actual,
            "difference": null, "source": "engine"}]);
        checks(answers)
    };
    assert_eq!(with(50, 0.8, 0.0.into()), ["engine-caching-off"]);
    assert_eq!(
        with(50, 0.1, 0.0.into()),
        [""; 0],
        "there was little to reuse"
    );
    assert_eq!(with(5, 0.8, 0.0.into()), [""; 0], "too few");
    assert_eq!(with(50, 0.8, Value::Null), [""; 0], "not known");
    assert_eq!(with(50, 0.8, 0.4.into()), ["predicted-too-high"]);
    assert_eq!(with(50, 0.4, 0.8.into()), ["predicted-too-low"]);
    assert_eq!(with(50, 0.8, 0.7.into()), [""; 0]);
}
