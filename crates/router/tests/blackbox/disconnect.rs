//! A client that leaves: the pod is let go at once, and is not blamed.

use crate::{CHAT, completion, setup, streamed};
use e2e::{Client, Gate, Pod, Router, Script, event, until, usage_event};
use serde_json::Value;

/// Waits until nothing is under way, on all gauges and on the pods' counts.
async fn all_quiet(router: &Router) {
    until("in-flight counts are back at 0", async || {
        let page = router.debug("pods").await;
        let pods_idle = page["pods"].as_array()?.iter().all(|p| p["inFlight"] == 0);
        let metrics = router.metrics().await;
        let gauges_zero = [
            "kthena_router_active_requests",
            "kthena_router_active_downstream_requests",
            "kthena_router_active_upstream_requests",
        ]
        .iter()
        .all(|name| metrics.count(name, &[]) == 0.0);
        (pods_idle && gauges_zero).then_some(())
    })
    .await;
}

async fn begun(router: &Router, id: &str, body: String) -> Client {
    let mut client = router.connect().await;
    client
        .request("POST", CHAT, &[("x-request-id", id)], body)
        .await;
    client
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = begun(&router, "gone", streamed("x")).await;
    stream.send(event("a"));
    client.head().await;
    client.expect(event("a")).await;
    assert_eq!(router.debug("pods").await["pods"][0]["inFlight"], 1);
    let metrics = router.metrics().await;
    assert_eq!(
        metrics.value("kthena_router_active_requests", &[]),
        Some(1.0)
    );
    for (name, label) in [
        ("kthena_router_active_downstream_requests", ("model", "m")),
        (
            "kthena_router_active_upstream_requests",
            ("model_server", "default/m"),
        ),
    ] {
        assert_eq!(metrics.value(name, &[label]), Some(1.0), "{name}");
    }
    drop(client);
    pod.left(1).await;
    let line = router.logged("gone").await;
    assert_eq!(line["status_code"], 200);
    assert_eq!(
        (&line["error"]["type"], &line["error_origin"]),
        (&"client_disconnected".into(), &"client".into())
    );
    all_quiet(&router).await;
    assert_eq!(
        router.scores("prefix-cache", "x").await,
        [Some(0)],
        "nothing is recorded"
    );
    assert_eq!(
        router.chat("y").await.status,
        200,
        "the pod is as good as before"
    );
}

#[tokio::test]
async fn d5_a_client_that_leaves_after_the_last_event_had_all_of_it() {
    for (path, body, last) in [
        (CHAT, streamed("x"), "data: [DONE]\n\n"),
        (
            "/v1/responses",
            r#"{"model":"m","stream":true,"input":"x"}"#.to_owned(),
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\
             \"output_tokens\":3}}}\n\n",
        ),
    ] {
        let pod = Pod::start().await;
        let (script, stream) = Script::stream();
        pod.next(script);
        let router = setup().pods(&[&pod]).start().await;
        let mut client = router.connect().await;
        let id = [("x-request-id", "done")];
        client.request("POST", path, &id, body).await;
        stream.send(event("a"));
        client.head().await;
        client.expect(event("a")).await;
        stream.send(usage_event() + last);
        if path == CHAT {
            client.expect(last).await;
        } else {
            client.expect(usage_event() + last).await;
        }
        drop(client);
        pod.left(1).await;
        let line = router.logged("done").await;
        assert_eq!(
            (&line["status_code"], &line["error"]),
            (&200.into(), &Value::Null)
        );
        assert_eq!(line["output_tokens"], 3);
        all_quiet(&router).await;
        let entries = router.metrics().await;
        assert_eq!(
            entries.count("kthena_router_prefix_cache_entries", &[]),
            1.0
        );
    }
}

#[tokio::test]
async fn before_the_response_head() {
    let [a, b] = Pod::several().await;
    a.answers(Script::hang());
    b.answers(Script::hang());
    let router = setup().pods(&[&a, &b]).start().await;
    let client = begun(&router, "gone", streamed("x")).await;
    let asked = until("a pod is asked", async || {
        [&a, &b].into_iter().find(|p| !p.seen().is_empty())
    })
    .await;
    drop(client);
    asked.left(1).await;
    let line = router.logged("gone").await;
    assert_eq!(
        (&line["status_code"], &line["error_origin"]),
        (&499.into(), &"client".into())
    );
    all_quiet(&router).await;
    assert_eq!(
        a.seen().len() + b.seen().len(),
        1,
        "no other pod is asked for a client that left"
    );
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0), Some(0)]);
}

#[tokio::test]
async fn while_the_head_is_held() {
    let pod = Pod::start().await;
    pod.answers(
        Script::raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").then_hang(),
    );
    let router = setup().pods(&[&pod]).start().await;
    let client = begun(&router, "gone", streamed("x")).await;
    pod.request(1).await;
    drop(client);
    pod.left(1).await;
    assert_eq!(router.logged("gone").await["status_code"], 499);
    all_quiet(&router).await;
}

#[tokio::test]
async fn in_the_middle_of_its_own_body() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: r\r\nX-Request-Id: half\r\nContent-Length: 100\r\n\r\n{{\"model\""
    );
    client.send(head).await;
    drop(client);
    let line = router.logged("half").await;
    assert_eq!(
        (&line["status_code"], &line["error"]["type"]),
        (&499.into(), &"client_disconnected".into())
    );
    all_quiet(&router).await;
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn with_bytes_beyond_its_request_on_the_way() {
    let request = format!(
        "GET /v1/models HTTP/1.1\r\nHost: r\r\nX: {}\r\n\r\n",
        "x".repeat(9000)
    );
    // A stray line end, as old clients send it; the next request; the start of one that is longer than what is read at once.
    for (beyond, when) in [
        ("\r\n", "with"),
        ("\r\n", "after"),
        (&request, "with"),
        (&request[..9000], "after"),
    ] {
        let pod = Pod::start().await;
        pod.answers(Script::hang());
        let router = setup().pods(&[&pod]).start().await;
        let mut client = router.connect().await;
        let body = completion("x");
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nX-Request-Id: gone\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if when == "with" {
            client.send(head + &body + beyond).await;
            pod.request(1).await;
        } else {
            client.send(head + &body).await;
            pod.request(1).await;
            client.send(beyond).await;
        }
        drop(client);
        pod.left(1).await;
        let line = router.logged("gone").await;
        assert_eq!(
            (&line["status_code"], &line["error_origin"]),
            (&499.into(), &"client".into())
        );
        all_quiet(&router).await;
    }
}

#[tokio::test]
async fn others_on_the_same_pod_are_not_disturbed() {
    let pod = Pod::start().await;
    let gate = Gate::closed();
    pod.answers(Script::json(200, e2e::chat_answer()).behind(&gate));
    let router = setup().pods(&[&pod]).start().await;
    let mut stays = begun(&router, "stays", completion("a")).await;
    pod.request(1).await;
    let leaves = begun(&router, "leaves", completion("b")).await;
    pod.request(2).await;
    drop(leaves);
    pod.left(2).await;
    assert_eq!(router.debug("pods").await["pods"][0]["inFlight"], 1);
    gate.open();
    assert_eq!(stays.answer().await.text(), e2e::chat_answer());
    all_quiet(&router).await;
}
