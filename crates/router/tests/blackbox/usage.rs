//! The usage option that the router adds to streams, and the event that it keeps to itself.

use crate::{CHAT, COMPLETIONS, setup, streamed};
use e2e::{End, Pod, Script, chat_answer, event, usage_event};

const DONE: &str = "data: [DONE]\n\n";

#[tokio::test]
async fn a_stream_is_asked_for_usage_with_nothing_else_changed() {
    let cases = [
        (
            r#"{"model":"m","stream":true}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            r#"{"stream_options" : null, "model":"m","stream":true }"#,
            r#"{"stream_options" : {"include_usage":true}, "model":"m","stream":true }"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{ }}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true }}"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"continuous_usage_stats":false, "x":[1]} }"#,
            r#"{"model":"m","stream":true,"stream_options":{"continuous_usage_stats":false, "x":[1],"include_usage":true} }"#,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage": false,"x":1}}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage": true,"x":1}}"#,
        ),
    ];
    let pod = Pod::start().await;
    pod.answers(Script::events(&[&event("a"), &usage_event(), DONE]));
    let router = setup().pods(&[&pod]).start().await;
    for (number, (sent, wanted)) in cases.into_iter().enumerate() {
        for (turn, path) in [CHAT, COMPLETIONS].into_iter().enumerate() {
            let answer = router.post(path, sent).await;
            assert_eq!(
                answer.text(),
                event("a") + DONE,
                "the usage event is hidden: {sent}"
            );
            let seen = pod.request(number * 2 + turn + 1).await;
            assert_eq!(String::from_utf8_lossy(&seen.body), wanted);
        }
    }
}

#[tokio::test]
async fn a_client_that_asked_for_usage_gets_it() {
    let pod = Pod::start().await;
    pod.next(Script::events(&[&event("a"), &usage_event(), DONE]));
    let router = setup().pods(&[&pod]).start().await;
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    let answer = router.post(CHAT, body).await;
    assert_eq!(answer.text(), event("a") + &usage_event() + DONE);
    assert_eq!(pod.only().body, body.as_bytes());
}

#[tokio::test]
async fn a_client_that_asked_for_usage_gets_it_from_a_model_of_another_name_too() {
    let pod = Pod::start().await;
    pod.next(Script::events(&[&event("a"), &usage_event(), DONE]));
    let router = setup().server(&[&pod], "  model: other\n").start().await;
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    let answer = router.post(CHAT, body).await;
    assert_eq!(answer.text(), event("a") + &usage_event() + DONE);
    let seen = String::from_utf8(pod.only().body).unwrap();
    assert_eq!(seen, body.replace("\"m\"", "\"other\""));
}

#[tokio::test]
async fn nothing_is_added_where_nothing_is_streamed_or_the_api_has_no_such_option() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (number, (path, body)) in [
        (CHAT, r#"{"model":"m"}"#),
        (CHAT, r#"{"model":"m","stream":false}"#),
        (COMPLETIONS, r#"{"model":"m","stream":null}"#),
        ("/v1/responses", r#"{"model":"m","stream":true}"#),
        ("/v1/messages", r#"{"model":"m","stream":true}"#),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(router.post(path, body).await.text(), chat_answer());
        let seen = pod.request(number + 1).await;
        assert_eq!(String::from_utf8_lossy(&seen.body), body, "{path}");
    }
}

#[tokio::test]
async fn the_hidden_event_stays_hidden_however_the_stream_is_cut() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let whole = event("a") + &usage_event() + DONE;
    for size in [1, 7, 64, whole.len()] {
        let (script, stream) = Script::stream();
        pod.next(script);
        whole
            .as_bytes()
            .chunks(size)
            .for_each(|piece| stream.send(piece));
        stream.finish();
        let answer = router.post(CHAT, r#"{"model":"m","stream":true}"#).await;
        assert_eq!(answer.text(), event("a") + DONE, "pieces of {size}");
        assert_eq!(answer.end, End::Whole);
    }
}

#[tokio::test]
async fn token_counts_are_logged_and_counted_also_when_hidden() {
    let pod = Pod::start().await;
    pod.next(Script::events(&[&event("a"), &usage_event(), DONE]));
    let router = setup().pods(&[&pod]).start().await;
    let id = [("x-request-id", "t")];
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"0123456"}]}"#;
    router.post_with(CHAT, &id, body).await;
    let line = router.logged("t").await;
    assert_eq!(line["output_tokens"], 3);
    // "<|im_start|>user\n0123456<|im_end|>\n": 35 characters, four a token.
    assert_eq!(line["input_tokens"], 9);
    let metrics = router.metrics().await;
    for (kind, count) in [("input", 9.0), ("output", 3.0)] {
        let labels = [("model", "m"), ("token_type", kind), ("path", CHAT)];
        assert_eq!(
            metrics.value("kthena_router_tokens_total", &labels),
            Some(count),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn a_coded_stream_passes_as_it_comes_and_is_not_asked_for_where_usage_is() {
    let pod = Pod::start().await;
    // What it holds does not matter: blank lines in packed bytes are chance.
    let headers = [
        ("content-type", "text/event-stream"),
        ("content-encoding", "gzip"),
    ];
    let (script, stream) = Script::follow(200, &headers);
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    let accepts = [("accept-encoding", "gzip, br")];
    client.request("POST", CHAT, &accepts, streamed("x")).await;
    for piece in ["first, without a line end", "second"] {
        stream.send(piece);
        if piece.starts_with("first") {
            client.head().await;
        }
        client.expect(piece).await;
    }
    stream.finish();
    assert_eq!(client.rest().await.1, End::Whole);
    assert_eq!(pod.only().headers.get("accept-encoding"), Some("identity"));
}
