//! Clients that speak HTTP/2 with prior knowledge, on the same port.

use crate::{CHAT, completion, setup, streamed};
use e2e::{End, Gate, H2, Pod, Script, event, rest, until, within};
use http_body_util::BodyExt;

#[tokio::test]
async fn a_request_and_its_headers() {
    let pod = Pod::start().await;
    pod.answers(Script::reply(
        201,
        &[
            ("content-type", "application/json"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("x-kept", "1"),
        ],
        e2e::chat_answer(),
    ));
    let router = setup().pods(&[&pod]).start().await;
    let client = H2::connect(router.port).await;
    let answer = client.post(CHAT, &completion("x")).await;
    assert_eq!((answer.status, answer.text()), (201, e2e::chat_answer()));
    assert_eq!(
        (answer.headers.get("x-hop"), answer.headers.get("x-kept")),
        (None, Some("1"))
    );
    let seen = pod.only();
    assert_eq!(seen.line, format!("POST {CHAT} HTTP/1.1"));
    assert_eq!(seen.headers.all("host"), ["router"]);
    assert_eq!(seen.body, completion("x").as_bytes());
    let id = seen.headers.get("x-request-id").unwrap().to_owned();
    assert_eq!(router.logged(&id).await["protocol"], "HTTP/2.0");
}

#[tokio::test]
async fn many_requests_at_once_on_one_connection() {
    let pod = Pod::start().await;
    let gate = Gate::closed();
    pod.answers(Script::json(200, e2e::chat_answer()).behind(&gate));
    let router = setup().pods(&[&pod]).start().await;
    let client = std::sync::Arc::new(H2::connect(router.port).await);
    let mut under_way = tokio::task::JoinSet::new();
    for number in 0..20 {
        let client = std::sync::Arc::clone(&client);
        under_way.spawn(async move {
            client
                .post(CHAT, &completion(&number.to_string()))
                .await
                .status
        });
    }
    pod.request(20).await;
    gate.open();
    let statuses = within("all answers", under_way.join_all()).await;
    assert_eq!(statuses, [200; 20]);
}

#[tokio::test]
async fn a_stream_arrives_piece_by_piece_and_a_break_is_an_error() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let client = H2::connect(router.port).await;
    for whole in [true, false] {
        let (script, stream) = Script::stream();
        pod.next(script);
        stream.send(event("a"));
        let mut body = client.open(CHAT, &streamed("x")).await.into_body();
        for piece in ["a", "b", "c"] {
            if piece != "a" {
                stream.send(event(piece));
            }
            let frame = within("a frame", body.frame()).await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), event(piece));
        }
        if whole {
            stream.finish();
            assert_eq!(rest(&mut body).await, (Vec::new(), End::Whole));
        } else {
            stream.fin();
            assert_eq!(rest(&mut body).await, (Vec::new(), End::Cut));
        }
    }
    let answer = client.post(CHAT, &completion("x")).await;
    assert_eq!(
        (answer.status, answer.end),
        (200, End::Whole),
        "other streams of the connection live on"
    );
}

#[tokio::test]
async fn a_client_that_cancels_its_stream_ends_the_pods_work() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    stream.send(event("a"));
    let router = setup().pods(&[&pod]).start().await;
    let client = H2::connect(router.port).await;
    let response = client.open(CHAT, &streamed("x")).await;
    drop(response);
    pod.left(1).await;
    until("nothing is in flight", async || {
        (router.debug("pods").await["pods"][0]["inFlight"] == 0).then_some(())
    })
    .await;
    assert_eq!(client.post(CHAT, &completion("y")).await.status, 200);
}

#[tokio::test]
async fn a_body_larger_than_the_windows_arrives() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let client = H2::connect(router.port).await;
    let body = completion(&"0123456789abcdef".repeat(400_000));
    assert_eq!(client.post(CHAT, &body).await.status, 200);
    assert!(
        pod.only().body == body.as_bytes(),
        "6.4 MB arrive as they were"
    );
}

#[tokio::test]
async fn a_drain_closes_the_connection_after_its_streams() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    stream.send(event("a"));
    let mut router = setup().pods(&[&pod]).start().await;
    let client = H2::connect(router.port).await;
    let mut body = client.open(CHAT, &streamed("x")).await.into_body();
    router.terminate();
    router.log.has("draining").await;
    within("a frame", body.frame()).await.unwrap().unwrap();
    stream.finish();
    assert_eq!(rest(&mut body).await, (Vec::new(), End::Whole));
    drop(body);
    client.closed().await;
    assert_eq!(router.exit_code().await, Some(0));
}
