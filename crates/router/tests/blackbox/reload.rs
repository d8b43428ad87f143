//! Manifests that change while the router serves.

use crate::{CHAT, completion, setup, streamed};
use e2e::{End, Pod, Script, event, model_route, model_server, until};

#[tokio::test]
async fn e4_a_removed_endpoint_loses_its_entries_and_that_is_no_eviction() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    // 40 blocks each, until both pods hold some.
    let mut turn = 0;
    while a.seen().is_empty() || b.seen().is_empty() {
        turn += 1;
        router
            .post("/v1/completions", completion(&crate::text(turn, 2560)))
            .await;
    }
    let entries = async || {
        router
            .metrics()
            .await
            .value("kthena_router_prefix_cache_entries", &[])
            .unwrap()
    };
    let of = |pod: &Pod| 40.0 * pod.seen().len() as f64;
    assert_eq!(entries().await, of(&a) + of(&b));
    router.set_pods(&[&a]).await;
    until("the entries of the removed pod are gone", async || {
        (entries().await == of(&a)).then_some(())
    })
    .await;
    router.set_pods(&[]).await;
    until("all entries are gone", async || {
        (entries().await == 0.0).then_some(())
    })
    .await;
    assert_eq!(
        router
            .metrics()
            .await
            .count("kthena_router_prefix_cache_evictions_total", &[]),
        0.0
    );
}

#[tokio::test]
async fn d7_a_request_that_outlives_its_pod_leaves_nothing_behind() {
    let [old, new] = Pod::several().await;
    let (script, stream) = Script::stream();
    old.next(script);
    let router = setup().pods(&[&old]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    stream.send(event("a"));
    client.head().await;
    client.expect(event("a")).await;
    // Another endpoint of the same name is another pod.
    router.write("server.yaml", &model_server("m", &[&new], ""));
    until("the new pod takes requests", async || {
        router.chat("y").await;
        (!new.seen().is_empty()).then_some(())
    })
    .await;
    // The stream under way is not dropped.
    stream.send(event("b"));
    client.expect(event("b")).await;
    stream.finish();
    assert_eq!(client.rest().await, (Vec::new(), End::Whole));
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
    let entries = router
        .metrics()
        .await
        .value("kthena_router_prefix_cache_entries", &[]);
    assert_eq!(entries, Some(1.0), "the one block of y on the new pod");
}

#[tokio::test]
async fn an_invalid_document_is_named_and_the_last_good_ones_stay_in_force() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a]).start().await;
    let bad = model_server("m", &[&b], "").replace("vLLM", "vLLLM");
    router.write("server.yaml", &bad);
    let line = router.log.has("spec.inferenceEngine").await;
    let place = router
        .manifests()
        .join("server.yaml:6: spec.inferenceEngine: ");
    assert!(line.contains(&*place.to_string_lossy()), "{line}");
    assert!(line.contains("\"vLLLM\""), "{line}");
    router.log.has("the last good ones stay in force").await;
    assert_eq!(router.chat("x").await.status, 200);
    assert_eq!((a.seen().len(), b.seen().len()), (1, 0));
    // A text that is no YAML at all.
    router.write("more.yaml", "kind: [\n");
    router.log.has("more.yaml:").await;
    assert_eq!(router.chat("x").await.status, 200);
    router.delete("more.yaml");
    router.write("server.yaml", &model_server("m", &[&b], ""));
    until("the corrected document is in force", async || {
        assert_eq!(router.chat("x").await.status, 200);
        (!b.seen().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn changes_are_picked_up_without_dropping_a_request() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = setup().pods(&[&pods[0]]).start().await;
    let mut sent = 0;
    for turn in 1..=6 {
        let new = &pods[turn % 3];
        let before = new.seen().len();
        router.write("server.yaml", &model_server("m", &[new], ""));
        while new.seen().len() == before {
            sent += 1;
            assert_eq!(
                router.chat(&format!("{sent}")).await.status,
                200,
                "request {sent}"
            );
        }
    }
    let served: usize = pods.iter().map(|p| p.seen().len()).sum();
    assert_eq!(served, sent, "each request reached one pod once");
}

#[tokio::test]
async fn a_model_scaled_to_zero_and_back() {
    let pod = Pod::start().await;
    let router = setup().pods(&[]).start().await;
    assert_eq!(
        router.chat("x").await.error(),
        (
            503,
            "pod_discovery".into(),
            "no available pods for model server: default/m".into()
        )
    );
    router.set_pods(&[&pod]).await;
    assert_eq!(router.chat("x").await.status, 200);
    router.set_pods(&[]).await;
    assert_eq!(router.chat("x").await.status, 503);
}

#[tokio::test]
async fn routes_come_and_go() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let ask = async |model: &str| {
        let body = completion("x").replace("\"m\"", &format!("{model:?}"));
        router.post("/v1/completions", body).await.status
    };
    assert_eq!(ask("org/new").await, 404);
    router.write("new.yaml", &model_route("new", "org/new", "m"));
    until("the new route is in force", async || {
        (ask("org/new").await == 200).then_some(())
    })
    .await;
    router.delete("new.yaml");
    until("the route is gone", async || {
        (ask("org/new").await == 404).then_some(())
    })
    .await;
    assert_eq!(ask("m").await, 200);
}

#[tokio::test]
async fn f9_a_restart_starts_with_an_empty_cache() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    router.chat("x").await;
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(100)]);
    let router = router.restart().await;
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
    assert_eq!(
        router
            .metrics()
            .await
            .value("kthena_router_prefix_cache_entries", &[]),
        Some(0.0)
    );
}
