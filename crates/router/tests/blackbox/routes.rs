//! Which ModelServer a request goes to: names, rules, headers and weights.

use crate::{CHAT, completion, setup};
use e2e::{Pod, Router, model_server};

const HEAD: &str = "apiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelRoute\nmetadata: {name: m}\nspec:\n";

/// A router with the ModelServers `a` and `b`, a pod each, and a route with this spec.
async fn between(spec: &str) -> (Router, [Pod; 2]) {
    let pods: [Pod; 2] = Pod::several().await;
    let router = setup()
        .manifest("a.yaml", &model_server("a", &[&pods[0]], ""))
        .manifest(
            "b.yaml",
            &model_server("b", &[&pods[1]], "  model: renamed\n"),
        )
        .manifest("route.yaml", &format!("{HEAD}{spec}"))
        .start()
        .await;
    (router, pods)
}

fn counts(pods: &[Pod; 2]) -> [usize; 2] {
    pods.each_ref().map(|p| p.seen().len())
}

#[tokio::test]
async fn the_first_rule_whose_headers_match_decides() {
    let spec = "  modelName: m\n  rules:\n  - modelMatch:\n      headers:\n        x-tier: {exact: premium}\n        \
                x-region: {prefix: eu-}\n    targetModels: [{modelServerName: b}]\n  - targetModels: [{modelServerName: a}]\n";
    let (router, pods) = between(spec).await;
    for (headers, wanted) in [
        (&[][..], [1, 0]),
        (&[("X-Tier", "premium"), ("X-Region", "eu-1")][..], [1, 1]),
        (&[("x-tier", "premium")][..], [2, 1]),
        (&[("x-tier", "Premium"), ("x-region", "eu-1")][..], [3, 1]),
        (&[("x-tier", "premium"), ("x-region", "us-1")][..], [4, 1]),
    ] {
        assert_eq!(
            router
                .post_with(CHAT, headers, completion("x"))
                .await
                .status,
            200
        );
        assert_eq!(counts(&pods), wanted, "{headers:?}");
    }
    let body = String::from_utf8(pods[1].only().body).unwrap();
    assert_eq!(body, completion("x").replace("\"m\"", "\"renamed\""));
}

#[tokio::test]
async fn an_adapter_keeps_its_name() {
    let spec = "  modelName: m\n  loraAdapters: [tuned]\n  rules:\n  - targetModels: [{modelServerName: b}]\n";
    let (router, pods) = between(spec).await;
    let body = completion("x").replace("\"m\"", "\"tuned\"");
    assert_eq!(router.post(CHAT, &body).await.status, 200);
    assert_eq!(pods[1].only().body, body.as_bytes());
    router.chat("x").await;
    let base = String::from_utf8(pods[1].request(2).await.body).unwrap();
    assert!(base.contains("\"renamed\""), "{base}");
}

#[tokio::test]
async fn weights_share_the_requests_and_zero_gets_none() {
    let target = |a: u32, b: u32| {
        format!(
            "  modelName: m\n  rules:\n  - targetModels:\n    - {{modelServerName: a, weight: {a}}}\n    \
             - {{modelServerName: b, weight: {b}}}\n"
        )
    };
    let (router, pods) = between(&target(0, 100)).await;
    for _ in 0..20 {
        router.chat("x").await;
    }
    assert_eq!(counts(&pods), [0, 20]);
    router.write("route.yaml", &format!("{HEAD}{}", target(70, 30)));
    e2e::until("the new weights are in force", async || {
        router.chat("x").await;
        (!pods[0].seen().is_empty()).then_some(())
    })
    .await;
    let before = counts(&pods);
    for _ in 0..300 {
        router.chat("x").await;
    }
    // 210 of 300; the standard deviation is 8, so this fails by chance once in 10^7 runs.
    let share = counts(&pods)[0] - before[0];
    assert!((168..=252).contains(&share), "{share} of 300");
}
