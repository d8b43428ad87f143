//! What the router takes for cached, against what engines have cached.

use super::{Facts, Finding, Model, Severity};

/// Requests from which on the comparison says something.
const ENOUGH: u64 = 20;
/// Prediction from which on an engine that reuses nothing is suspicious.
const HIGH: f64 = 0.3;
/// Below it an engine reuses nothing.
const NOTHING: f64 = 0.005;
/// Difference that is far.
const FAR: f64 = 0.2;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let models = facts.prefix.models.iter().filter(|m| m.requests >= ENOUGH);
    models.filter_map(of_model).collect()
}

fn of_model(model: &Model) -> Option<Finding> {
    let (predicted, actual) = (model.predicted?, model.actual?);
    let evidence = format!(
        "Over {} requests of the last 15 minutes the router expected {:.0} % of the prompts to be cached; engines had {:.0} % ({}).",
        model.requests,
        predicted * 100.0,
        actual * 100.0,
        match model.source.as_str() {
            "usage" => "cached_tokens in their answers",
            _ => "their own counters",
        },
    );
    let name = &model.model;
    let (check, severity, title, advice) = if actual < NOTHING && predicted >= HIGH {
        (
            "engine-caching-off",
            Severity::Problem,
            format!("The engines of {name} reuse nothing: prefix caching seems to be off"),
            "vLLM: remove --no-enable-prefix-caching. SGLang: remove --disable-radix-cache. Without it, equal prefixes cost \
             their full time and the router's choice gains nothing.",
        )
    } else if predicted - actual >= FAR {
        (
            "predicted-too-high",
            Severity::Warning,
            format!("The engines of {name} have less cached than the router believes"),
            "Engines evict earlier than the router forgets: give them more KV memory (vLLM: --gpu-memory-utilization), or lower \
             maxHashCacheSize to what they hold (tokens of the KV cache × 4 / blockSizeToHash). After a restart of an engine \
             this passes by itself within 15 minutes.",
        )
    } else if actual - predicted >= FAR {
        (
            "predicted-too-low",
            Severity::Note,
            format!("The engines of {name} have more cached than the router knows"),
            "Another replica or other clients use them too, the router has started lately, or prompts share more than \
             maxBlocksToMatch × blockSizeToHash bytes.",
        )
    } else {
        return None;
    };
    Some(Finding {
        check,
        severity,
        title,
        evidence,
        advice: advice.to_owned(),
    })
}
