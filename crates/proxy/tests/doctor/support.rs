//! Facts of a router with which nothing is wrong, and ways to spoil them.

use proxy::doctor::{Answers, Exposition, Facts, Finding, Replica, examine};
use serde_json::{Value, json};

/// The debug pages of a healthy router: two pods, one of which has the prefix and gets the requests.
pub(crate) fn healthy() -> Answers {
    let pod = |name: &str| {
        json!({"name": name, "namespace": "default", "engine": "vLLM", "modelServers": ["default/m"],
            "metricsKnown": true, "metricsAgeMs": 400})
    };
    let window =
        json!({"requests": 100, "matchedBlocks": 2400, "hashedBlocks": 3200, "ratio": 0.75});
    Answers {
        router: json!({
            "uptimeSeconds": 86_400.0,
            "filters": ["least-request"],
            "scores": [{"name": "least-request", "weight": 1}, {"name": "gpu-usage", "weight": 1},
                {"name": "prefix-cache", "weight": 1}],
            "warnings": [],
        }),
        prefix: json!({
            "configuration": {"blockSizeToHash": 64, "maxBlocksToMatch": 128, "topKMatches": 5, "maxHashCacheSize": 50_000,
                "weight": 1},
            "pods": [{"pod": "default/a", "entries": 900, "capacity": 50_000, "evictions": 0},
                {"pod": "default/b", "entries": 300, "capacity": 50_000, "evictions": 0}],
            "entries": 1200,
            "evictions": 0,
            "ratio": {"1m": window, "5m": window, "15m": window},
            "prefixes": [],
            "models": [{"model": "m", "requests": 100, "predicted": 0.72, "actual": 0.70, "difference": -0.02,
                "source": "usage"}],
        }),
        decisions: json!({"decisions": vec![decision("default/a", 24, 0); 20]}),
        prompts: prompts(2000, 1500, 1600),
        pods: json!({"pods": [pod("a"), pod("b")]}),
    }
}

/// A decision for this pod; pods a and b hold so many of 32 blocks, and score the same otherwise.
pub(crate) fn decision(pod: &str, a: u64, b: u64) -> Value {
    let candidate = |name: &str, matched: u64| {
        let prefix = matched * 100 / 32;
        json!({"pod": name, "total": 200 + prefix, "matchedBlocks": matched,
            "scores": {"least-request": 100, "gpu-usage": 100, "prefix-cache": prefix}})
    };
    let candidates = [candidate("default/a", a), candidate("default/b", b)];
    let chosen = candidates.iter().find(|c| c["pod"] == pod).unwrap();
    json!({"at": 1_764_480_000.5, "requestId": "r", "model": "m", "modelServer": "default/m", "pod": pod,
        "prefillPod": null, "total": chosen["total"], "scores": chosen["scores"], "matchedBlocks": chosen["matchedBlocks"],
        "hashedBlocks": 32, "attempt": 1, "pinned": false, "status": 200, "ttftMs": 40.5, "promptTokens": 500,
        "cachedTokens": 350, "candidates": candidates})
}

/// Prompts of so many bytes, of which every two and the two most alike share so many.
pub(crate) fn prompts(bytes: u64, pair: u64, best: u64) -> Value {
    let spread = |n: u64| json!({"min": n, "median": n, "max": n});
    json!({"models": [{"model": "m", "samples": 32, "promptBytes": spread(bytes), "pairBytes": spread(pair),
        "bestBytes": spread(best), "exactBelow": 1024}]})
}

/// A metrics page with so many scored requests and their mean ratio, and so many evictions.
pub(crate) fn page(requests: u32, ratio: f64, evictions: u32) -> Exposition {
    Exposition::parse(&format!(
        "kthena_router_build_info{{version=\"0\"}} 1\n\
         kthena_router_prefix_cache_match_ratio_sum{{model=\"m\"}} {}\n\
         kthena_router_prefix_cache_match_ratio_count{{model=\"m\"}} {requests}\n\
         kthena_router_prefix_cache_evictions_total{{model=\"m\"}} {evictions}\n",
        f64::from(requests) * ratio,
    ))
}

/// A replica that was read twice.
pub(crate) fn replica(before: Exposition, now: Exposition) -> Replica {
    Replica {
        address: "router-0:9090".into(),
        before: Some(before),
        now,
    }
}

pub(crate) fn facts(answers: Answers) -> Facts {
    let quiet = replica(page(100, 0.75, 0), page(120, 0.75, 0));
    Facts::new(answers, vec![quiet]).expect("the contract's shape")
}

/// What is found.
pub(crate) fn found(answers: Answers) -> Vec<Finding> {
    examine(&facts(answers))
}

/// The names of the checks that found something.
pub(crate) fn checks(answers: Answers) -> Vec<&'static str> {
    found(answers).iter().map(|f| f.check).collect()
}

/// The finding of a check.
pub(crate) fn the(check: &str, answers: Answers) -> Finding {
    let all = found(answers);
    let one = all.iter().find(|f| f.check == check).cloned();
    one.unwrap_or_else(|| panic!("{check} found nothing, but there is {all:?}"))
}
