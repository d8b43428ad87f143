//! Prefix routing as it shows from outside.

use crate::{completion, setup, text};
use e2e::{Gauges, Pod, Router, scheduler};

const COMPLETIONS: &str = "/v1/completions";

/// Prefix-cache scores of a text completion.
async fn scores(router: &Router, prompt: &str) -> Vec<Option<u64>> {
    let plan = router.explain(COMPLETIONS, completion(prompt)).await;
    let candidates = plan["candidates"].as_array().unwrap();
    candidates
        .iter()
        .map(|c| c["scores"]["prefix-cache"].as_u64())
        .collect()
}

#[tokio::test]
async fn i1_the_same_request_twice() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = setup().pods(&[&pods[0], &pods[1], &pods[2]]).start().await;
    assert_eq!(
        router.scores("prefix-cache", "How do I enable it?").await,
        [Some(0); 3]
    );
    router.chat("How do I enable it?").await;
    let wanted: Vec<_> = pods
        .iter()
        .map(|p| Some(100 * p.seen().len() as u64))
        .collect();
    assert_eq!(
        router.scores("prefix-cache", "How do I enable it?").await,
        wanted
    );
    for _ in 0..10 {
        router.chat("How do I enable it?").await;
    }
    let counts: Vec<_> = pods.iter().map(|p| p.seen().len()).collect();
    assert_eq!(
        counts.iter().max(),
        Some(&11),
        "all went to the pod that served the first: {counts:?}"
    );
}

#[tokio::test]
async fn d1_a_success_records_the_prompt_for_its_pod() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let prompt = text(1, 2000);
    router.post(COMPLETIONS, completion(&prompt)).await;
    assert_eq!(
        router
            .metrics()
            .await
            .value("kthena_router_prefix_cache_entries", &[]),
        Some(32.0)
    );
    // 24 of the 32 blocks, and then something else.
    let other = prompt[..24 * 64].to_owned() + &text(2, 2000 - 24 * 64);
    assert_eq!(scores(&router, &other).await, [Some(75)]);
}

#[tokio::test]
async fn b6_the_same_text_for_another_model_shares_nothing() {
    let pod = Pod::start().await;
    let route = e2e::model_route("other", "other", "m");
    let router = setup()
        .pods(&[&pod])
        .manifest("other.yaml", &route)
        .start()
        .await;
    router.chat("x").await;
    let body = r#"{"model":"other","messages":[{"role":"user","content":"x"}]}"#;
    let plan = router.explain(crate::CHAT, body).await;
    assert_eq!(plan["candidates"][0]["scores"]["prefix-cache"], 0);
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(100)]);
}

#[tokio::test]
async fn c7_an_empty_prompt_is_not_scored_and_still_served() {
    let pods: [Pod; 2] = Pod::several().await;
    let router = setup().pods(&[&pods[0], &pods[1]]).start().await;
    let body = r#"{"model":"m","messages":[]}"#;
    let plan = router.explain(crate::CHAT, body).await;
    assert_eq!(plan["prompt"]["blocks"], 0);
    assert_eq!(plan["candidates"][0]["scores"], serde_json::json!({}));
    assert_eq!(plan["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(router.post(crate::CHAT, body).await.status, 200);
    assert_eq!(
        router
            .metrics()
            .await
            .count("kthena_router_prefix_cache_match_ratio_count", &[]),
        0.0
    );
}

#[tokio::test]
async fn i2_the_highest_total_decides_so_a_busy_pod_can_lose() {
    let pods: [Pod; 2] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 1), ("gpu-usage", 2)], "{}");
    let router = setup()
        .pods(&[&pods[0], &pods[1]])
        .config(&config)
        .start()
        .await;
    router.chat("x").await;
    let served = usize::from(pods[0].seen().is_empty());
    let (matching, idle) = (&pods[served], &pods[1 - served]);
    router.chat("x").await;
    assert_eq!(
        matching.seen().len(),
        2,
        "equally loaded: the match decides"
    );
    let busy = Gauges {
        usage: 0.9,
        ..Gauges::default()
    };
    matching.shows(Some(busy)).await;
    let plan = router
        .explain(
            crate::CHAT,
            r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#,
        )
        .await;
    // 100 for the match and twice 10 for the room that is left, against twice 100.
    assert_eq!(plan["candidates"][served]["total"], 120);
    assert_eq!(plan["candidates"][1 - served]["total"], 200);
    router.chat("x").await;
    assert_eq!(idle.seen().len(), 1);
}

#[tokio::test]
async fn i3_a_pod_with_a_full_queue_is_removed_whatever_the_weights() {
    let pods: [Pod; 2] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 1000)], "{}");
    let router = setup()
        .pods(&[&pods[0], &pods[1]])
        .config(&config)
        .start()
        .await;
    router.chat("x").await;
    let served = usize::from(pods[0].seen().is_empty());
    let waiting = |waiting| {
        Some(Gauges {
            waiting,
            ..Gauges::default()
        })
    };
    pods[served].shows(waiting(9)).await;
    router.chat("x").await;
    assert_eq!(
        pods[served].seen().len(),
        2,
        "9 of 10 waiting requests: still in"
    );
    pods[served].shows(waiting(10)).await;
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let plan = router.explain(crate::CHAT, body).await;
    assert_eq!(plan["candidates"][served]["filteredBy"], "least-request");
    assert_eq!(plan["candidates"][served]["scores"], serde_json::json!({}));
    router.chat("x").await;
    assert_eq!(
        (pods[served].seen().len(), pods[1 - served].seen().len()),
        (2, 1)
    );
    pods[1 - served].shows(waiting(10)).await;
    assert_eq!(
        router.chat("x").await.error(),
        (
            400,
            "scheduling".into(),
            "can't schedule to target pod: pods have all been filtered out by \"least-request\""
                .into()
        )
    );
}

#[tokio::test]
async fn i4_a_value_that_changes_near_the_start_breaks_the_prefix() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let shared = text(3, 1280);
    router
        .post(COMPLETIONS, completion(&format!("12:00:01 {shared}")))
        .await;
    assert_eq!(
        scores(&router, &format!("12:00:02 {shared}")).await,
        [Some(0)]
    );
    router
        .post(COMPLETIONS, completion(&format!("{shared} 12:00:01")))
        .await;
    // 20 of 21 blocks.
    assert_eq!(
        scores(&router, &format!("{shared} 12:00:02")).await,
        [Some(95)]
    );
}

#[tokio::test]
async fn e2_a_full_list_drops_its_oldest_entries_and_counts_them() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{maxHashCacheSize: 30}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    let [a, b] = [text(1, 1280), text(2, 1280)];
    router.post(COMPLETIONS, completion(&a)).await;
    let metrics = router.metrics().await;
    assert_eq!(
        metrics.count("kthena_router_prefix_cache_evictions_total", &[]),
        0.0
    );
    router.post(COMPLETIONS, completion(&b)).await;
    let metrics = router.metrics().await;
    assert_eq!(
        metrics.value("kthena_router_prefix_cache_entries", &[]),
        Some(30.0)
    );
    let evicted = metrics.value(
        "kthena_router_prefix_cache_evictions_total",
        &[("model", "m")],
    );
    assert_eq!(evicted, Some(10.0));
    // The head of the older prompt is kept longer than its tail.
    assert_eq!(scores(&router, &a).await, [Some(50)]);
    assert_eq!(scores(&router, &b).await, [Some(100)]);
}

#[tokio::test]
async fn e5_all_entries_together_are_bounded_by_the_pods() {
    let pods: [Pod; 2] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 1)], "{maxHashCacheSize: 30}");
    let router = setup()
        .pods(&[&pods[0], &pods[1]])
        .config(&config)
        .start()
        .await;
    let mut most = 0.0_f64;
    for seed in 1..=40 {
        router
            .post(COMPLETIONS, completion(&text(seed, 1280)))
            .await;
        let metrics = router.metrics().await;
        let entries = metrics.value("kthena_router_prefix_cache_entries", &[]);
        most = most.max(entries.expect("the gauge is there"));
    }
    assert!(pods.iter().all(|p| p.seen().len() > 1));
    assert_eq!(most, 60.0);
}

#[tokio::test]
async fn pods_of_one_name_in_two_namespaces_are_two() {
    let pods: [Pod; 2] = Pod::several().await;
    let elsewhere = |text: String| text.replace("  name: m\n", "  name: m\n  namespace: other\n");
    let server = elsewhere(e2e::model_server("m", &[&pods[1]], ""));
    let route = elsewhere(e2e::model_route("m", "theirs", "m"));
    let router = setup()
        .pods(&[&pods[0]])
        .manifest("other-server.yaml", &server)
        .manifest("other-route.yaml", &route)
        .start()
        .await;
    router.chat("x").await;
    let theirs = completion("x").replace("\"m\"", "\"theirs\"");
    router.post(COMPLETIONS, &theirs).await;
    assert_eq!(pods.each_ref().map(|p| p.seen().len()), [1, 1]);
    let plan = router.explain(COMPLETIONS, &theirs).await;
    assert_eq!(plan["candidates"][0]["pod"], "other/m:p0");
    assert_eq!(plan["candidates"][0]["scores"]["prefix-cache"], 100);
}

#[tokio::test]
async fn c10_ties_are_spread_over_the_pods() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = setup().pods(&[&pods[0], &pods[1], &pods[2]]).start().await;
    for number in 0..60 {
        router.chat(&format!("{number}")).await;
    }
    // Each is missed with a chance of (2/3)^60, once in 10^10 runs.
    assert!(pods.iter().all(|p| !p.seen().is_empty()));
}

#[tokio::test]
async fn j5_each_replica_knows_only_what_it_routed_itself() {
    let pods: [Pod; 2] = Pod::several().await;
    let one = setup().pods(&[&pods[0], &pods[1]]).start().await;
    let other = setup().pods(&[&pods[0], &pods[1]]).start().await;
    one.chat("How do I enable it?").await;
    let best = async |router: &Router| {
        let scores = router.scores("prefix-cache", "How do I enable it?").await;
        scores.into_iter().max().flatten()
    };
    assert_eq!(best(&one).await, Some(100));
    assert_eq!(best(&other).await, Some(0));
    let entries = other.metrics().await;
    assert_eq!(
        entries.value("kthena_router_prefix_cache_entries", &[]),
        Some(0.0)
    );
}
