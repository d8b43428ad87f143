//! Corners of HTTP/1.1 that clients and engines really reach.

use crate::{CHAT, completion, setup, text};
use e2e::{End, Gate, Pod, Script, until};

#[tokio::test]
async fn a_client_that_says_close_gets_its_answer_and_the_close() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client
        .request("POST", CHAT, &[("Connection", "close")], completion("x"))
        .await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    client.closed().await;
    // The pod's connection is another matter.
    router.chat("y").await;
    assert!(
        pod.seen()
            .iter()
            .all(|s| s.headers.get("connection").is_none())
    );
}

#[tokio::test]
async fn a_target_in_absolute_form_becomes_a_path() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client
        .request(
            "POST",
            "http://elsewhere:99/v1/embeddings?q=1",
            &[],
            completion("x"),
        )
        .await;
    assert_eq!(client.answer().await.status, 200);
    let seen = pod.only();
    assert_eq!(seen.line, "POST /v1/embeddings?q=1 HTTP/1.1");
    assert_eq!(
        seen.headers.all("host"),
        ["elsewhere:99"],
        "not the header's"
    );
}

#[tokio::test]
async fn two_framings_never_reach_a_pod() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let body = completion("x");
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n\
             0\r\n\r\n",
            body.len()
        ))
        .await;
    let status = client.answer().await.status;
    match pod.seen().as_slice() {
        // Refused, which RFC 9112 (6.3) allows …
        [] => assert_eq!(status, 400),
        // … or read by its chunks, and sent on with one framing.
        [seen] => {
            assert_eq!(String::from_utf8_lossy(&seen.body), body);
            let framings =
                ["content-length", "transfer-encoding"].map(|name| seen.headers.all(name).len());
            assert_eq!(framings.iter().sum::<usize>(), 1);
        }
        more => assert_eq!(more.len(), 1, "one request became several"),
    }
}

#[tokio::test]
async fn an_interim_response_of_a_pod_is_not_its_answer() {
    let pod = Pod::start().await;
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    pod.answers(Script::raw(format!(
        "{hints}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}"
    )));
    let router = setup().pods(&[&pod]).start().await;
    let answer = router.chat("x").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
}

#[tokio::test]
async fn a_switch_of_protocols_that_nobody_asked_for_is_no_answer() {
    let [odd, good] = Pod::several().await;
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    odd.answers(Script::raw(switch));
    let router = setup().pods(&[&odd]).start().await;
    let refused = router.chat("x").await.error();
    assert_eq!((refused.0, refused.1.as_str()), (503, "proxy"));
    router.log.has("101 Switching Protocols").await;
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
    router.set_pods(&[&odd, &good]).await;
    for _ in 0..8 {
        assert_eq!(router.chat("x").await.status, 200);
    }
}

#[tokio::test]
async fn a_chunked_answer_stays_whole_however_its_chunks_are_cut() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let text = e2e::chat_answer();
    for size in [1, 3, 100, text.len()] {
        let (script, stream) = Script::follow(200, &[("content-type", "application/json")]);
        pod.next(script);
        text.as_bytes()
            .chunks(size)
            .for_each(|piece| stream.send(piece));
        stream.finish();
        let id = format!("pieces-of-{size}");
        let answer = router
            .post_with(CHAT, &[("x-request-id", &id)], completion("x"))
            .await;
        assert_eq!((answer.text(), answer.end), (text.clone(), End::Whole));
        assert_eq!(
            router.logged(&id).await["output_tokens"],
            3,
            "pieces of {size}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_body() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for raw in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        pod.next(Script::raw(raw));
        let answer = router.chat("x").await;
        assert!(matches!(answer.status, 200 | 204), "{raw}");
        assert_eq!((answer.body.len(), answer.end), (0, End::Whole));
    }
    assert_eq!(router.debug("pods").await["pods"][0]["inFlight"], 0);
}

#[tokio::test]
async fn nonsense_instead_of_a_request_is_400() {
    let router = setup().pods(&[]).start().await;
    let mut client = router.connect().await;
    client.send("\u{1}\u{2}\u{3} nonsense\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 400);
    client.closed().await;
    assert_eq!(router.get(router.port, "/healthz").await.status, 200);
    router.log.has("its head cannot be read").await;
    let mut client = router.connect().await;
    client
        .send(format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101)))
        .await;
    assert_eq!(client.answer().await.status, 431);
    client.closed().await;
    until("both are counted", async || {
        let metrics = router.metrics().await;
        (metrics.count("kthena_router_malformed_requests_total", &[]) == 2.0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_request_with_two_hosts_reaches_no_pod() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (method, path) in [("POST", CHAT), ("GET", "/v1/models")] {
        let headers = [("x-request-id", path), ("Host", "other")];
        let mut client = router.connect().await;
        client
            .request(method, path, &headers, completion("x"))
            .await;
        let (status, kind, message) = client.answer().await.error();
        assert_eq!((status, kind.as_str()), (400, "request_parsing"));
        assert_eq!(message, "the request has several Host headers");
        assert_eq!(router.logged(path).await["status_code"], 400);
    }
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn requests_that_are_sent_ahead_are_answered_in_order() {
    let pod = Pod::start().await;
    let gate = Gate::closed();
    pod.next(Script::json(200, "\"first\"").behind(&gate));
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    let bodies = [10, 9_000, 30_000, 70_000].map(|size| completion(&text(size, size as usize)));
    let mut all = String::new();
    for body in &bodies {
        let length = body.len();
        all += &format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Length: {length}\r\n\r\n{body}\r\n"
        );
    }
    client.send(all).await;
    pod.request(1).await;
    gate.open();
    assert_eq!(client.answer().await.text(), "\"first\"");
    for _ in &bodies[1..] {
        assert_eq!(client.answer().await.text(), e2e::chat_answer());
    }
    let seen: Vec<_> = pod.seen().into_iter().map(|s| s.body).collect();
    assert!(seen == bodies.map(String::into_bytes));
}

#[tokio::test]
async fn a_request_of_http_1_0_without_a_host_reaches_the_pod_with_one() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let body = completion("x");
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert_eq!(client.answer().await.status, 200);
    let wanted = format!("127.0.0.1:{}", pod.port());
    assert_eq!(pod.only().headers.all("host"), [wanted]);
}
