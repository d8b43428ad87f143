//! The way down: no longer ready, nothing cut short that can still end, and an end nevertheless.

use crate::{CHAT, completion, setup, streamed};
use e2e::{Client, End, H2, Pod, Router, Script, Stream, event, until};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A router with a stream under way.
async fn busy(environment: &[(&str, &str)]) -> (Pod, Router, Client, Stream) {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let setup = environment
        .iter()
        .fold(setup().pods(&[&pod]), |s, (k, v)| s.env(k, v));
    let router = setup.start().await;
    let mut client = router.connect().await;
    client
        .request("POST", CHAT, &[("x-request-id", "last")], streamed("x"))
        .await;
    stream.send(event("a"));
    client.head().await;
    client.expect(event("a")).await;
    (pod, router, client, stream)
}

#[tokio::test]
async fn an_idle_router_ends_at_once_and_well() {
    let pod = Pod::start().await;
    let mut router = setup().pods(&[&pod]).start().await;
    let mut idle = router.connect().await;
    idle.request("POST", CHAT, &[], completion("x")).await;
    assert_eq!(idle.answer().await.status, 200);
    router.terminate();
    idle.closed().await;
    assert_eq!(router.exit_code().await, Some(0));
    router.log.has("drained").await;
}

#[tokio::test]
async fn a_drain_lets_streams_end_and_says_that_the_router_is_not_ready() {
    let (pod, mut router, mut client, stream) = busy(&[]).await;
    router.terminate();
    router.log.has("draining").await;
    let answer = until("readyz turns", async || {
        let answer = router.get(router.port, "/readyz").await;
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert_eq!(answer.text(), r#"{"message":"router is not ready"}"#);
    assert_eq!(
        router.get(router.port, "/healthz").await.status,
        200,
        "it lives, and must not be killed"
    );
    // Whoever has not heard yet is still served, and told to go elsewhere next time.
    let late = router.chat("late").await;
    assert_eq!(
        (late.status, late.headers.get("connection")),
        (200, Some("close"))
    );
    stream.send(event("b"));
    client.expect(event("b")).await;
    stream.finish();
    assert_eq!(client.rest().await, (Vec::new(), End::Whole));
    assert_eq!(router.exit_code().await, Some(0));
    router.logged("last").await;
    assert_eq!(pod.seen().len(), 2);
}

#[tokio::test]
async fn a_drain_takes_no_new_connections_after_a_while() {
    let (_pod, mut router, mut client, stream) = busy(&[("DRAIN_TIMEOUT", "6s")]).await;
    let port = router.port;
    let connect = async move || TcpStream::connect(("127.0.0.1", port)).await;
    router.terminate();
    router.log.has("draining").await;
    // It comes late, and would keep the router up as long as it likes.
    let mut idle = connect().await.unwrap();
    until("connections are refused", async || {
        connect().await.err().map(|error| {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        })
    })
    .await;
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    stream.send(event("b"));
    client.expect(event("b")).await;
    stream.finish();
    assert_eq!(client.rest().await, (Vec::new(), End::Whole));
    assert_eq!(router.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_drain_ends_after_drain_timeout() {
    let (_pod, mut router, mut client, _stream) = busy(&[("DRAIN_TIMEOUT", "1s")]).await;
    router.terminate();
    assert_eq!(router.exit_code().await, Some(1));
    router
        .log
        .has("Drain timeout exceeded after 1s: 1 requests still inflight, force-closing")
        .await;
    assert_eq!(client.rest().await.1, End::Cut);
    let line = router.logged("last").await;
    assert_eq!(
        (&line["error"]["type"], &line["error_origin"]),
        (&"shutdown".into(), &"router".into()),
        "the client did not leave"
    );
}

#[tokio::test]
async fn a_second_signal_ends_the_router_at_once() {
    let (_pod, mut router, mut client, _stream) = busy(&[]).await;
    router.terminate();
    router.log.has("draining").await;
    router.terminate();
    assert_eq!(router.exit_code().await, Some(1));
    router.log.has("second signal").await;
    assert_eq!(router.logged("last").await["error"]["type"], "shutdown");
    assert_eq!(client.rest().await.1, End::Cut);
}

#[tokio::test]
async fn a_drain_counts_requests_and_not_connections() {
    let pod = Pod::start().await;
    pod.answers(Script::hang());
    let setup = setup().pods(&[&pod]).env("DRAIN_TIMEOUT", "300ms");
    let mut router = setup.start().await;
    let client = std::sync::Arc::new(H2::connect(router.port).await);
    for number in 1..=3 {
        let client = std::sync::Arc::clone(&client);
        tokio::spawn(async move { client.open(CHAT, &completion("x")).await });
        pod.request(number).await;
    }
    router.terminate();
    assert_eq!(router.exit_code().await, Some(1));
    let said = "Drain timeout exceeded after 0.3s: 3 requests still inflight, force-closing";
    router.log.has(said).await;
    let cut = |line: &String| line.contains("\"status_code\":503") && line.contains("shutdown");
    assert_eq!(router.out.lines().iter().filter(|l| cut(l)).count(), 3);
}
