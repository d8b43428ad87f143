//! Event streams: relayed as they arrive, not framed anew, recorded at their end.

use crate::{CHAT, COMPLETIONS, completion, setup, streamed};
use e2e::{End, Gate, Pod, Script, event, until};
use std::time::{Duration, Instant};

#[tokio::test]
async fn pieces_reach_the_client_as_the_pod_sends_them() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    // Each piece is sent only after the one before has arrived: nothing waits for more.
    stream.send(event("a"));
    let head = client.head().await;
    assert_eq!(
        head.headers.get("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(head.headers.get("content-length"), None);
    client.expect(event("a")).await;
    for piece in [
        event("b"),
        event("c") + &event("d"),
        "data: [DONE]\n\n".into(),
    ] {
        stream.send(&piece);
        client.expect(&piece).await;
    }
    stream.finish();
    assert_eq!(client.rest().await, (Vec::new(), End::Whole));
}

#[tokio::test]
async fn a_comment_that_keeps_the_connection_alive_is_not_held_back() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    // It goes on at once, though it is no event and though a usage event is to be hidden.
    stream.send(": ping\n\n");
    client.head().await;
    client.expect(": ping\n\n").await;
    stream.finish();
    assert_eq!(client.rest().await, (Vec::new(), End::Whole));
}

#[tokio::test]
async fn bytes_of_a_stream_are_not_touched() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for text in [
        "data:{\"a\":1}\r\n\r\nevent: x\r\ndata: {}\r\nid: 7\r\nretry: 10\r\n\r\n",
        "data: a\rdata: b\r\rdata: c\n\n",
        "data: no blank line at the end\n",
        "data: no line end at all",
        "\u{feff}data: caf\u{e9} \u{1f600}\n\n:\n\n\n\n",
    ] {
        for size in [1, 5, text.len()] {
            let (script, stream) = Script::stream();
            pod.next(script);
            text.as_bytes()
                .chunks(size)
                .for_each(|piece| stream.send(piece));
            stream.finish();
            let answer = router.post(CHAT, streamed("x")).await;
            assert_eq!(
                (answer.text().as_str(), answer.end),
                (text, End::Whole),
                "pieces of {size}"
            );
        }
    }
}

#[tokio::test]
async fn d5_a_stream_is_recorded_when_it_has_ended() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    stream.send(event("a"));
    client.head().await;
    client.expect(event("a")).await;
    assert_eq!(
        router.scores("prefix-cache", "x").await,
        [Some(0)],
        "before the end"
    );
    stream.finish();
    assert_eq!(client.rest().await.1, End::Whole);
    assert_eq!(
        router.scores("prefix-cache", "x").await,
        [Some(100)],
        "after the end"
    );
}

#[tokio::test]
async fn d5_an_engine_that_gives_up_inside_a_200_stream_records_nothing() {
    let aborted = event("a").replace("null", "\"abort\"");
    for last in [
        "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"internal\",\"code\":500}}\n\n",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"x\"}}\n\n",
        "data: {\"type\":\"response.failed\",\"response\":{}}\n\n",
        &aborted,
    ] {
        let pod = Pod::start().await;
        pod.next(Script::events(&[&event("a"), last, "data: [DONE]\n\n"]));
        let router = setup().pods(&[&pod]).start().await;
        let id = [("x-request-id", "e")];
        let answer = router.post_with(CHAT, &id, streamed("x")).await;
        let wanted = event("a") + last + "data: [DONE]\n\n";
        assert_eq!(
            (answer.status, answer.text(), answer.end),
            (200, wanted, End::Whole)
        );
        let line = router.logged("e").await;
        assert_eq!(
            (&line["error"]["type"], &line["error_origin"]),
            (&"proxy".into(), &"upstream".into())
        );
        assert_eq!(
            router.scores("prefix-cache", "x").await,
            [Some(0)],
            "{last}"
        );
        assert_eq!(pod.seen().len(), 1, "nothing is tried again");
    }
}

#[tokio::test]
async fn d5_an_aborted_answer_that_is_not_streamed_records_nothing() {
    let pod = Pod::start().await;
    let aborted = e2e::chat_answer().replace("\"stop\"", "\"abort\"");
    pod.answers(Script::json(200, &aborted));
    let router = setup().pods(&[&pod]).start().await;
    assert_eq!(router.chat("x").await.text(), aborted);
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
}

#[tokio::test]
async fn words_about_errors_in_an_answer_are_no_errors() {
    let pod = Pod::start().await;
    let harmless = event(r#"\"error\": {\"code\":500} finish_reason: \"abort\""#);
    pod.next(Script::events(&[&harmless, "data: {\"error\":null}\n\n"]));
    let router = setup().pods(&[&pod]).start().await;
    router.post(CHAT, streamed("x")).await;
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(100)]);
}

#[tokio::test]
async fn timeout_does_not_bound_the_stream() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let limit = Duration::from_millis(1500);
    let router = setup()
        .server(&[&pod], "  trafficPolicy:\n    timeout: 1500ms\n")
        .start()
        .await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    stream.send(event("a"));
    client.head().await;
    let begun = Instant::now();
    client.expect(event("a")).await;
    until("more than the timeout passes", async || {
        (begun.elapsed() > limit).then_some(())
    })
    .await;
    stream.send(event("b"));
    client.expect(event("b")).await;
    stream.finish();
    assert_eq!(client.rest().await.1, End::Whole);
}

#[tokio::test]
async fn the_head_is_held_no_longer_than_configured() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup()
        .pods(&[&pod])
        .env("RESPONSE_HEAD_HOLD", "20ms")
        .start()
        .await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    // No byte of a body so far.
    assert_eq!(client.head().await.status, 200);
    stream.send(event("a"));
    client.expect(event("a")).await;
    stream.finish();
    assert_eq!(client.rest().await.1, End::Whole);
}

#[tokio::test]
async fn a_broken_answer_with_a_length_ends_uncleanly() {
    let pod = Pod::start().await;
    let gate = Gate::closed();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";
    pod.answers(
        Script::raw(format!("{head}{{\"half\":"))
            .then_wait(&gate)
            .then_fin(),
    );
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], streamed("x")).await;
    assert_eq!(
        client.head().await.headers.get("content-length"),
        Some("100")
    );
    client.expect("{\"half\":").await;
    gate.open();
    assert_eq!(client.rest().await, (Vec::new(), End::Cut));
    assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
}

#[tokio::test]
async fn bytes_that_came_just_before_a_break_reach_the_client() {
    let pod = Pod::start().await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";
    // In one write, so that the router meets the first byte and the end together.
    pod.answers(Script::raw(format!("{head}{{\"half\":")).then_fin());
    let router = setup().pods(&[&pod]).start().await;
    let answer = router.chat("x").await;
    assert_eq!(
        (answer.status, answer.text().as_str(), answer.end),
        (200, "{\"half\":", End::Cut)
    );
}

#[tokio::test]
async fn d5_a_stream_that_ends_with_its_connection_needs_its_last_event() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let cut = "data: {\"choices\":[{\"delta\":{\"conte";
    let done = "data: [DONE]\n\n";
    for (last, end, score) in [
        (String::new(), End::Cut, 0),
        (cut.to_owned(), End::Cut, 0),
        (event("b") + done, End::Whole, 100),
    ] {
        let pod = Pod::start().await;
        let body = event("a") + &last;
        pod.answers(Script::raw(format!("{head}{body}")).then_fin());
        let router = setup().pods(&[&pod]).start().await;
        let id = [("x-request-id", "e")];
        let answer = router.post_with(CHAT, &id, streamed("x")).await;
        assert_eq!((answer.text(), answer.end), (body, end));
        let failed = router.logged("e").await["error"]["type"] == "proxy";
        assert_eq!(failed, end == End::Cut, "{last}");
        assert_eq!(router.scores("prefix-cache", "x").await, [Some(score)]);
    }
}

#[tokio::test]
async fn d5_a_document_that_ends_with_its_connection_needs_its_last_bracket() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let whole = e2e::chat_answer();
    for (body, end, recorded) in [
        (&whole[..whole.len() - 1], End::Cut, 0.0),
        (&whole[..whole.find("Hello").unwrap()], End::Cut, 0.0),
        (&whole, End::Whole, 1.0),
    ] {
        let pod = Pod::start().await;
        pod.answers(Script::raw(format!("{head}{body}")).then_fin());
        let router = setup().pods(&[&pod]).start().await;
        let id = [("x-request-id", "e")];
        let answer = router.post_with(COMPLETIONS, &id, completion("x")).await;
        assert_eq!((answer.text().as_str(), answer.end), (body, end));
        let line = router.logged("e").await;
        let failed = (&line["error"]["type"], &line["error_origin"])
            == (&"proxy".into(), &"upstream".into());
        assert_eq!(failed, end == End::Cut, "{body}");
        let metrics = router.metrics().await;
        let entries = metrics.count("kthena_router_prefix_cache_entries", &[]);
        assert_eq!(entries, recorded, "{body}");
    }
}

#[tokio::test]
async fn d5_error_events_of_every_form_record_nothing() {
    for last in [
        "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\",\"param\":null}\n\n",
        "event: error\ndata: out of memory\n\n",
        "data: {\"object\":\"error\",\"message\":\"x\",\"code\":500}\n\n",
    ] {
        let pod = Pod::start().await;
        pod.next(Script::events(&[&event("a"), last]));
        let router = setup().pods(&[&pod]).start().await;
        let id = [("x-request-id", "e")];
        let answer = router.post_with(CHAT, &id, streamed("x")).await;
        assert_eq!((answer.text(), answer.end), (event("a") + last, End::Whole));
        assert_eq!(router.logged("e").await["error"]["type"], "proxy", "{last}");
        assert_eq!(router.scores("prefix-cache", "x").await, [Some(0)]);
    }
}
