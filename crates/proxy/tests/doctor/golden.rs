//! What a person reads.

use crate::support::{decision, facts, healthy, prompts};
use proxy::doctor::{examine, render};
use serde_json::json;

#[test]
fn nothing_wrong() {
    let facts = facts(healthy());
    insta::assert_snapshot!(render(&facts, &examine(&facts)));
}

#[test]
fn too_little_to_judge_by() {
    let mut answers = healthy();
    answers.decisions = json!({"decisions": vec![decision("default/a", 24, 0); 9]});
    let facts = facts(answers);
    insta::assert_snapshot!(render(&facts, &examine(&facts)));
}

/// A name that would colour a terminal, forge a line, or turn it around.
#[test]
fn names_are_told_and_not_obeyed() {
    let mut answers = healthy();
    answers.prefix["models"][0]["model"] = "m\u{1b}[31m\u{202e}\nPROBLEM x".into();
    answers.prefix["models"][0]["actual"] = 0.0.into();
    let facts = facts(answers);
    let text = render(&facts, &examine(&facts));
    assert!(text.contains(r"m\u{1b}[31m\u{202e} PROBLEM x"), "{text}");
}

#[test]
fn several_findings_the_worst_first() {
    let mut answers = healthy();
    answers.router["warnings"] = json!([{"kind": "unknown-argument",
        "text": "Plugin prefix-cache has no argument \"blockSizeToHsh\", it is ignored, did you mean blockSizeToHash? It has blockSizeToHash, \
                 maxBlocksToMatch, topKMatches, maxHashCacheSize, recordSticky."}]);
    answers.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 20]});
    answers.prompts = prompts(2000, 27, 47);
    answers.prompts["models"][0]["resumes"] = json!({"samples": 32, "from": 47, "after": 19});
    answers.prefix["models"][0]["actual"] = 0.3.into();
    answers.prefix["models"][0]["predicted"] = 0.9.into();
    answers.router["uptimeSeconds"] = 12.0.into();
    answers.prefix["ratio"]["15m"]["ratio"] = 0.3.into();
    let facts = facts(answers);
    insta::assert_snapshot!(render(&facts, &examine(&facts)));
}
