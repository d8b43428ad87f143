//! Each row of the document's troubleshooting table: the symptom can be reproduced, and its resolution helps.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Gauges, Pod, Router, Script, scheduler};

const RATIO_SUM: &str = "kthena_router_prefix_cache_match_ratio_sum";
const RATIO_COUNT: &str = "kthena_router_prefix_cache_match_ratio_count";

/// Match ratios of these prompts, sent one after the other.
async fn ratios(router: &Router, prompts: &[String]) -> Vec<f64> {
    let mut ratios = Vec::new();
    for prompt in prompts {
        let before = router.metrics().await;
        router.post(COMPLETIONS, completion(prompt)).await;
        let after = router.metrics().await;
        assert_eq!(
            after.count(RATIO_COUNT, &[]),
            before.count(RATIO_COUNT, &[]) + 1.0
        );
        let ratio = after.count(RATIO_SUM, &[]) - before.count(RATIO_SUM, &[]);
        ratios.push((ratio * 1000.0).round() / 1000.0);
    }
    ratios
}

async fn blocks(router: &Router, bytes: usize) -> u64 {
    let plan = router
        .explain(COMPLETIONS, completion(&text(1, bytes)))
        .await;
    plan["prompt"]["blocks"].as_u64().unwrap()
}

#[tokio::test]
async fn i5_router_does_not_start_until_the_weight_is_set_or_the_entry_removed() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 0), ("gpu-usage", 1)], "{}");
    let mut router = setup().pods(&[&pod]).config(&config).launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    router
        .log
        .has("score plugin \"prefix-cache\" must set a weight greater than 0")
        .await;
    let config = scheduler(&[("prefix-cache", 1), ("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
    let config = scheduler(&[("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    assert_eq!(router.scores("prefix-cache", "x").await, [None]);
    assert_eq!(router.scores("gpu-usage", "x").await, [Some(100)]);
}

#[tokio::test]
async fn i5_an_argument_has_no_effect_when_misspelled_or_before_a_restart() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{blockSizeToHsh: 128}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    assert_eq!(blocks(&router, 1280).await, 20);
    router.log.has("\"blockSizeToHsh\"").await;
    let right = scheduler(&[("prefix-cache", 1)], "{blockSizeToHash: 128}");
    std::fs::write(router.dir().join("routerConfiguration.yaml"), right).unwrap();
    // Even a change of the manifests brings no reload of the configuration.
    router.set_pods(&[]).await;
    router.set_pods(&[&pod]).await;
    assert_eq!(blocks(&router, 1280).await, 20);
    let router = router.restart().await;
    assert_eq!(blocks(&router, 1280).await, 10);
}

#[tokio::test]
async fn i5_args_that_cannot_be_parsed_are_defaults_until_they_are_integers() {
    let pod = Pod::start().await;
    let start = async |args: &str| {
        let config = scheduler(&[("prefix-cache", 1)], args);
        setup().pods(&[&pod]).config(&config).start().await
    };
    let router = start("{blockSizeToHash: 128, maxBlocksToMatch: '4'}").await;
    router
        .log
        .has("Failed to unmarshal PrefixCacheArgs, using default values")
        .await;
    assert_eq!(blocks(&router, 1280).await, 20, "all four are defaults");
    let router = start("{blockSizeToHash: 128, maxBlocksToMatch: 4}").await;
    assert_eq!(blocks(&router, 1280).await, 4);
}

#[tokio::test]
async fn i5_match_ratio_is_0_with_per_request_data_first_and_not_with_it_last() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let shared = text(1, 1280);
    let first: Vec<_> = (0..4).map(|n| format!("request {n}: {shared}")).collect();
    assert_eq!(ratios(&router, &first).await, [0.0; 4]);
    let last: Vec<_> = (0..3).map(|n| format!("{shared} request {n}")).collect();
    assert_eq!(ratios(&router, &last).await, [0.0, 0.952, 0.952]);
}

#[tokio::test]
async fn i5_match_ratio_is_0_while_requests_fail_and_the_access_log_says_so() {
    let pod = Pod::start().await;
    pod.answers(Script::json(500, r#"{"error":"broken"}"#));
    let router = setup().pods(&[&pod]).start().await;
    let prompt = vec![text(1, 640); 3];
    assert_eq!(ratios(&router, &prompt).await, [0.0; 3]);
    router.out.has("\"upstream_status_code\":500").await;
    pod.answers(Script::json(200, e2e::chat_answer()));
    assert_eq!(ratios(&router, &prompt).await, [0.0, 1.0, 1.0]);
}

#[tokio::test]
async fn i5_match_ratio_is_low_where_the_shared_part_is_short() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let shared = text(1, 128);
    let prompts: Vec<_> = (2..5).map(|n| shared.clone() + &text(n, 1152)).collect();
    assert_eq!(ratios(&router, &prompts).await, [0.0, 0.1, 0.1]);
}

#[tokio::test]
async fn i5_match_ratio_drops_after_a_restart_and_recovers() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let prompt = vec![text(1, 640); 2];
    assert_eq!(ratios(&router, &prompt).await, [0.0, 1.0]);
    let router = router.restart().await;
    assert_eq!(ratios(&router, &prompt).await, [0.0, 1.0]);
}

#[tokio::test]
async fn i5_each_replica_keeps_its_own_cache() {
    let pod = Pod::start().await;
    let (one, other) = (
        setup().pods(&[&pod]).start().await,
        setup().pods(&[&pod]).start().await,
    );
    let prompt = [text(1, 640)];
    assert_eq!(ratios(&one, &prompt).await, [0.0]);
    assert_eq!(ratios(&other, &prompt).await, [0.0]);
    assert_eq!(ratios(&one, &prompt).await, [1.0]);
}

#[tokio::test]
async fn i5_evictions_grow_until_the_cache_holds_the_prompts() {
    let pod = Pod::start().await;
    let prompts: Vec<_> = (0..9).map(|n| text(n % 3 + 1, 640)).collect();
    for (size, evictions, last) in [(15, 75.0, 0.0), (30, 0.0, 1.0)] {
        let config = scheduler(
            &[("prefix-cache", 1)],
            &format!("{{maxHashCacheSize: {size}}}"),
        );
        let router = setup().pods(&[&pod]).config(&config).start().await;
        let ratios = ratios(&router, &prompts).await;
        assert_eq!(ratios[8], last, "{size} entries: {ratios:?}");
        let evicted = router
            .metrics()
            .await
            .count("kthena_router_prefix_cache_evictions_total", &[]);
        assert_eq!(evicted, evictions, "{size} entries");
    }
}

#[tokio::test]
async fn i5_a_shared_part_beyond_the_coverage_makes_all_requests_look_the_same() {
    let pods: [Pod; 2] = Pod::several().await;
    let shared = text(1, 640);
    let [mine, yours] = [shared.clone() + &text(2, 640), shared + &text(3, 640)];
    for (blocks, scores) in [(8, [100, 100]), (20, [100, 50])] {
        let config = scheduler(
            &[("prefix-cache", 1)],
            &format!("{{maxBlocksToMatch: {blocks}}}"),
        );
        // One pod after the other, so that each holds one conversation.
        let router = setup().pods(&[&pods[0]]).config(&config).start().await;
        router.post(COMPLETIONS, completion(&mine)).await;
        router.set_pods(&[&pods[0], &pods[1]]).await;
        let full = Gauges {
            waiting: 100,
            ..Gauges::default()
        };
        pods[0].shows(Some(full)).await;
        router.post(COMPLETIONS, completion(&yours)).await;
        pods[0].shows(Some(Gauges::default())).await;
        let plan = router.explain(COMPLETIONS, completion(&mine)).await;
        let seen = [0, 1].map(|n| {
            plan["candidates"][n]["scores"]["prefix-cache"]
                .as_u64()
                .unwrap()
        });
        assert_eq!(seen, scores, "{blocks} blocks");
    }
}

#[tokio::test]
async fn i5_a_higher_weight_sends_requests_to_the_matching_pod() {
    let pods: [Pod; 2] = Pod::several().await;
    for (weight, matching_wins) in [(1, false), (5, true)] {
        let config = scheduler(&[("prefix-cache", weight), ("gpu-usage", 2)], "{}");
        let router = setup().pods(&[&pods[0]]).config(&config).start().await;
        router.chat("x").await;
        router.set_pods(&[&pods[0], &pods[1]]).await;
        let busy = Gauges {
            usage: 0.9,
            ..Gauges::default()
        };
        pods[0].shows(Some(busy)).await;
        let (before, other) = (pods[0].seen().len(), pods[1].seen().len());
        router.chat("x").await;
        assert_eq!(
            pods[0].seen().len() - before,
            usize::from(matching_wins),
            "weight {weight}"
        );
        assert_eq!(
            pods[1].seen().len() - other,
            usize::from(!matching_wins),
            "weight {weight}"
        );
        pods[0].preset(Some(Gauges::default()));
    }
}
