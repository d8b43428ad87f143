//! Predicted against actual: what the router thought an engine to have cached, and what the engine says.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Gauges, Metrics, Pod, Router, Script, until};
use serde_json::{Value, json};

const PREDICTED: &str = "kthena_router_prefix_cache_predicted_ratio";
const ACTUAL: &str = "kthena_router_prefix_cache_actual_ratio";
const ERROR: &str = "kthena_router_prefix_cache_prediction_error";

/// An answer with this many prompt tokens, and this many of them from the cache.
fn answer(prompt: u32, cached: Option<u32>) -> Script {
    let details = cached.map(|cached| json!({"cached_tokens": cached}));
    let usage = json!({"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1, "prompt_tokens_details": details});
    let body = json!({"id": "c", "object": "text_completion", "model": "m", "choices": [], "usage": usage});
    Script::json(200, body.to_string())
}

async fn ask(router: &Router, prompt: &str) {
    let answer = router.post(COMPLETIONS, completion(prompt)).await;
    assert_eq!(answer.status, 200);
}

/// Count and sum of a histogram.
fn read(metrics: &Metrics, name: &str) -> (f64, f64) {
    let figure = |suffix: &str| metrics.count(&format!("{name}_{suffix}"), &[("model", "m")]);
    (figure("count"), figure("sum"))
}

async fn models(router: &Router) -> Value {
    let page = router.get(router.debug_port, "/debug/prefix-cache").await;
    page.json()["models"].clone()
}

#[tokio::test]
async fn what_the_engine_reports_is_compared_with_what_was_predicted() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let prompt = text(1, 640);
    pod.next(answer(160, Some(0)));
    ask(&router, &prompt).await;
    pod.next(answer(160, Some(120)));
    ask(&router, &prompt).await;
    let metrics = router.metrics().await;
    assert_eq!(read(&metrics, PREDICTED), (2.0, 1.0));
    assert_eq!(read(&metrics, ACTUAL), (2.0, 0.75));
    assert_eq!(read(&metrics, ERROR), (2.0, -0.25));
    assert_eq!(
        models(&router).await,
        json!([{"model": "m", "requests": 2, "predicted": 0.5, "actual": 0.375, "difference": -0.125, "source": "usage"}])
    );
}

#[tokio::test]
async fn a_prompt_that_is_longer_than_what_is_hashed_is_predicted_as_a_whole() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let shared = text(1, 8192);
    for (seed, cached) in [(2, 0), (3, 2048)] {
        pod.next(answer(8192, Some(cached)));
        ask(&router, &(shared.clone() + &text(seed, 24_576))).await;
    }
    let metrics = router.metrics().await;
    assert_eq!(read(&metrics, PREDICTED), (2.0, 0.25), "a quarter of one");
    assert_eq!(read(&metrics, ERROR), (2.0, 0.0));
}

#[tokio::test]
async fn an_engine_that_leaves_out_zeros_is_understood_once_it_has_reported() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (cached, compared) in [(None, 0.0), (Some(8), 1.0), (None, 2.0)] {
        pod.next(answer(16, cached));
        ask(&router, &text(2, 64)).await;
        assert_eq!(
            read(&router.metrics().await, ACTUAL),
            (compared, if compared > 0.0 { 0.5 } else { 0.0 })
        );
    }
    pod.next(answer(16, None));
    router.post("/v1/chat/completions", completion("x")).await;
    assert_eq!(
        read(&router.metrics().await, ACTUAL).0,
        2.0,
        "another API, of which nothing is known"
    );
}

#[tokio::test]
async fn an_engine_that_reports_nothing_is_compared_by_its_counters() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let counted = |queried, hit| {
        Some(Gauges {
            cache: Some((queried, hit)),
            ..Gauges::default()
        })
    };
    pod.shows(counted(5000, 4000)).await;
    assert_eq!(
        models(&router).await,
        json!([]),
        "what was before the first reading is not counted"
    );
    ask(&router, "x").await;
    ask(&router, "x").await;
    pod.shows(counted(5400, 4100)).await;
    let seen = until("the new reading", async || {
        let models = models(&router).await;
        (models != json!([])).then_some(models)
    })
    .await;
    assert_eq!(
        seen,
        json!([{"model": "m", "requests": 2, "predicted": 0.5, "actual": 0.25, "difference": -0.25, "source": "engine"}])
    );
    let metrics = router.metrics().await;
    let labels = [("backend_pod", "default/m:p0")];
    for (name, tokens) in [("queried", 400.0), ("hit", 100.0)] {
        let name = format!("kthena_router_pod_prefix_cache_{name}_tokens_total");
        assert_eq!(metrics.value(&name, &labels), Some(tokens), "{name}");
    }
    assert_eq!(metrics.value(&format!("{ACTUAL}_count"), &[]), None);
}
