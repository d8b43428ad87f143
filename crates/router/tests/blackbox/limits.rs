//! Bodies that are too large, however they come.

use crate::{CHAT, completion, setup};
use e2e::{Pod, Router, Script, until};
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

const LIMIT: usize = 10_000;

async fn limited(pod: &Pod) -> Router {
    let limit = LIMIT.to_string();
    setup()
        .pods(&[pod])
        .env("MAX_REQUEST_BODY_BYTES", &limit)
        .start()
        .await
}

fn too_large() -> (u16, String, String) {
    (
        413,
        "request_parsing".into(),
        "the request body is larger than 10000 bytes".into(),
    )
}

#[tokio::test]
async fn the_limit_itself_is_allowed() {
    let pod = Pod::start().await;
    let router = limited(&pod).await;
    let empty = completion("").len();
    let body = completion(&"a".repeat(LIMIT - empty));
    assert_eq!(body.len(), LIMIT);
    assert_eq!(router.post(CHAT, &body).await.status, 200);
    assert_eq!(pod.only().body, body.as_bytes());
    assert_eq!(router.post(CHAT, body + " ").await.error(), too_large());
    assert_eq!(pod.seen().len(), 1);
}

#[tokio::test]
async fn an_announced_length_is_refused_before_the_body_comes() {
    let pod = Pod::start().await;
    let router = limited(&pod).await;
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Length: 99999999999\r\n\r\n"
        ))
        .await;
    let answer = client.answer().await;
    assert_eq!(answer.error(), too_large());
    assert_eq!(answer.headers.get("connection"), Some("close"));
}

#[tokio::test]
async fn a_chunked_body_is_refused_where_it_crosses_the_limit() {
    let pod = Pod::start().await;
    let router = limited(&pod).await;
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))
        .await;
    // The body has no end; the answer comes nevertheless.
    for _ in 0..11 {
        client
            .send(format!("3e8\r\n{}\r\n", "a".repeat(1000)))
            .await;
    }
    assert_eq!(client.answer().await.error(), too_large());
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn a_small_body_that_stands_for_a_huge_one_is_refused() {
    let pod = Pod::start().await;
    let router = limited(&pod).await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder
        .write_all(completion(&" ".repeat(4 << 20)).as_bytes())
        .unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < LIMIT);
    let headers = [("content-encoding", "gzip")];
    assert_eq!(
        router.post_with(CHAT, &headers, &packed).await.error(),
        too_large()
    );
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn no_limit_and_no_announced_length_is_an_allocation() {
    let pod = Pod::start().await;
    let router = setup()
        .pods(&[&pod])
        .env("MAX_REQUEST_BODY_BYTES", "9223372036854775807")
        .start()
        .await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(completion("x").as_bytes()).unwrap();
    let headers = [("content-encoding", "gzip")];
    let packed = encoder.finish().unwrap();
    assert_eq!(router.post_with(CHAT, &headers, &packed).await.status, 200);
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nX-Request-Id: long\r\nContent-Length: 1000000000000000\r\n\r\n"
        ))
        .await;
    // More than the router reads at once, so that it has to put pieces together.
    client.send(vec![b' '; 2 << 20]).await;
    drop(client);
    router.logged("long").await;
    assert_eq!(router.chat("y").await.status, 200);
}

#[tokio::test]
async fn a_body_of_many_mebibytes_passes_under_the_default_limit() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let body = completion(&"0123456789abcdef".repeat(1 << 19));
    assert_eq!(router.post(CHAT, &body).await.status, 200);
    assert!(
        pod.only().body == body.as_bytes(),
        "8 MiB arrive as they were"
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_pod_back_and_not_the_routers_memory() {
    let pod = Pod::start().await;
    let (script, written) = Script::endless();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], completion("x")).await;
    client.head().await;
    // Stalled: the same count in 40 looks one after the other.
    let (mut last, mut same) = (0, 0);
    until("the pod is held back", async || {
        let now = written.load(Relaxed);
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        (same == 40).then_some(())
    })
    .await;
    // What the four socket buffers hold.
    assert!(last < 64 << 20, "{last} bytes");
    assert_eq!(router.chat("y").await.status, 200, "others are served");
    drop(client);
    pod.left(1).await;
}
