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
fn several_findings_the_worst_first() {
    let mut answers = healthy();
    answers.router["warnings"] = json!([{"kind": "unknown-argument",
        "text": "Plugin prefix-cache has no argument \"blockSizeToHsh\", it is ignored, did you mean blockSizeToHash? It has blockSizeToHash, \
                 maxBlocksToMatch, topKMatches, maxHashCacheSize, recordSticky."}]);
    answers.decisions = json!({"decisions": vec![decision("default/a", 0, 0); 20]});
    answers.prompts = prompts(2000, 27, 47);
    answers.prefix["models"][0]["actual"] = 0.3.into();
    answers.prefix["models"][0]["predicted"] = 0.9.into();
    answers.router["uptimeSeconds"] = 12.0.into();
    answers.prefix["ratio"]["15m"]["ratio"] = 0.3.into();
    let facts = facts(answers);
    insta::assert_snapshot!(render(&facts, &examine(&facts)));
}
