//! What reaches the pod, and what comes back from it.

use crate::{CHAT, calm, completion, setup};
use e2e::{End, Pod, Script};
use std::io::Write;

const ODD: &str = "{ \"messages\" :[ {\"content\":\"caf\\u00e9 \\ud83d\\ude00 \\/\",\"role\":\"user\"}\t], \
                   \"temperature\": 1.0e+0,\r\n \"seed\":12345678901234567890, \"x\":{\"b\":1,\"a\":[]}, \
                   \"model\" : \"m\", \"x\": null }\n";

#[tokio::test]
async fn a_body_reaches_the_pod_byte_for_byte() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let answer = router.post(CHAT, ODD).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text(), e2e::chat_answer());
    let seen = pod.only();
    assert_eq!(String::from_utf8_lossy(&seen.body), ODD);
    assert_eq!(seen.headers.all("content-length"), [ODD.len().to_string()]);
    assert_eq!(seen.headers.get("transfer-encoding"), None);
    assert!(seen.raw.ends_with(ODD.as_bytes()));
}

#[tokio::test]
async fn only_the_model_changes_where_the_server_has_another_name_for_it() {
    let pod = Pod::start().await;
    let router = setup()
        .server(&[&pod], "  model: 'org/\"q\" 7b'\n")
        .start()
        .await;
    assert_eq!(router.post(CHAT, ODD).await.status, 200);
    let wanted = ODD.replace("\"m\"", "\"org/\\\"q\\\" 7b\"");
    assert_eq!(String::from_utf8_lossy(&pod.only().body), wanted);
}

#[tokio::test]
async fn path_and_query_stay_and_other_apis_pass() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (number, target) in [
        "/v1/embeddings?a=b%20c&d",
        "/v1/responses",
        "/v1/messages",
        "/v1/rerank",
        "/v1/anything/at/all",
    ]
    .into_iter()
    .enumerate()
    {
        let body = r#"{"model":"m","input":"x","stream":true}"#;
        assert_eq!(router.post(target, body).await.status, 200, "{target}");
        let seen = pod.request(number + 1).await;
        assert_eq!(seen.line, format!("POST {target} HTTP/1.1"));
        assert_eq!(String::from_utf8_lossy(&seen.body), body, "{target}");
    }
}

#[tokio::test]
async fn headers_about_one_connection_end_at_the_router() {
    let pod = Pod::start().await;
    pod.answers(Script::reply(
        201,
        &[
            ("Content-Type", "application/json"),
            ("Connection", "X-Pod-Private"),
            ("X-Pod-Private", "1"),
            ("Keep-Alive", "timeout=5"),
            ("X-Engine-Ms", "12"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
        ],
        "{}",
    ));
    let router = setup().pods(&[&pod]).start().await;
    let headers = [
        ("Connection", "keep-alive, X-Private"),
        ("X-Private", "1"),
        ("Keep-Alive", "timeout=9"),
        ("TE", "trailers"),
        ("Upgrade", "websocket"),
        ("Proxy-Authorization", "Basic x"),
        ("Authorization", "Bearer token"),
        (
            "Traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("X-Many", "1"),
        ("X-Many", "2"),
    ];
    let answer = router.post_with(CHAT, &headers, completion("x")).await;
    let seen = pod.only();
    for name in [
        "x-private",
        "keep-alive",
        "te",
        "upgrade",
        "proxy-authorization",
        "connection",
    ] {
        assert_eq!(seen.headers.get(name), None, "{name} at the pod");
    }
    assert_eq!(seen.headers.all("authorization"), ["Bearer token"]);
    assert_eq!(seen.headers.all("traceparent").len(), 1);
    assert_eq!(seen.headers.all("x-many"), ["1", "2"]);
    assert_eq!(seen.headers.all("host"), ["router"]);
    assert_eq!((answer.status, answer.text().as_str()), (201, "{}"));
    for name in ["x-pod-private", "keep-alive"] {
        assert_eq!(answer.headers.get(name), None, "{name} at the client");
    }
    assert_eq!(answer.headers.get("x-engine-ms"), Some("12"));
    assert_eq!(answer.headers.all("set-cookie"), ["a=1", "b=2"]);
}

#[tokio::test]
async fn every_request_has_an_id_and_keeps_the_one_it_has() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    router.chat("x").await;
    let made = pod.only().headers.get("x-request-id").unwrap().to_owned();
    assert_eq!(made.len(), 36, "{made}");
    assert_eq!(router.logged(&made).await["status_code"], 200);
    let given = [("X-Request-Id", "mine-1")];
    router.post_with(CHAT, &given, completion("x")).await;
    assert_eq!(pod.request(2).await.headers.all("x-request-id"), ["mine-1"]);
    router.logged("mine-1").await;
}

#[tokio::test]
async fn a_chunked_upload_arrives_whole_with_one_framing() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let body = completion("in five pieces");
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        ))
        .await;
    for piece in body.as_bytes().chunks(body.len() / 5 + 1) {
        client.send(format!("{:X};x=y\r\n", piece.len())).await;
        client.send(piece).await;
        client.send("\r\n").await;
    }
    client.send("0\r\nX-Trailer: 1\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 200);
    let seen = pod.only();
    assert_eq!(String::from_utf8_lossy(&seen.body), body);
    let framings =
        seen.headers.all("content-length").len() + seen.headers.all("transfer-encoding").len();
    assert_eq!(framings, 1);
}

#[tokio::test]
async fn expect_100_continue_is_answered_by_the_router_and_ends_there() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let body = completion("after the go-ahead");
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    assert_eq!(client.head().await.status, 100);
    assert!(pod.seen().is_empty());
    client.send(&body).await;
    assert_eq!(client.answer().await.status, 200);
    let seen = pod.only();
    assert_eq!(seen.headers.get("expect"), None);
    assert_eq!(String::from_utf8_lossy(&seen.body), body);
}

#[tokio::test]
async fn one_connection_carries_many_requests_also_sent_ahead() {
    let pod = Pod::start().await;
    let router = calm(&pod).await;
    let mut client = router.connect().await;
    for number in 0..3 {
        client.request("POST", CHAT, &[], completion("a")).await;
        assert_eq!(client.answer().await.status, 200, "{number}");
    }
    client.request("POST", CHAT, &[], completion("b")).await;
    client.request("POST", CHAT, &[], completion("c")).await;
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(client.answer().await.status, 200);
    let seen = pod.seen();
    assert_eq!(seen.len(), 5);
    assert!(
        seen.iter().all(|s| s.connection == 0),
        "the pod's connection is kept"
    );
}

#[tokio::test]
async fn an_http_1_0_client_gets_a_body_that_ends_with_the_connection() {
    let pod = Pod::start().await;
    let (script, stream) = Script::stream();
    pod.next(script);
    let router = setup().pods(&[&pod]).start().await;
    let body = completion("x");
    let mut client = router.connect().await;
    client
        .send(format!(
            "POST {CHAT} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    stream.send("data: 1\n\n");
    stream.finish();
    let answer = client.answer().await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "data: 1\n\n")
    );
    assert_eq!(answer.headers.get("transfer-encoding"), None);
    assert_eq!(answer.end, End::Whole);
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_compressed_body_goes_on_as_it_came_and_its_prompt_is_known() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let packed = gzip(&completion("a compressed prompt"));
    let headers = [("Content-Encoding", "gzip")];
    assert_eq!(
        router
            .post_with("/v1/completions", &headers, &packed)
            .await
            .status,
        200
    );
    let seen = pod.only();
    assert_eq!(seen.body, packed);
    assert_eq!(seen.headers.all("content-encoding"), ["gzip"]);
    // The router has read the prompt: the same one in plain text is known now.
    let plan = router
        .explain("/v1/completions", completion("a compressed prompt"))
        .await;
    assert_eq!(plan["candidates"][0]["scores"]["prefix-cache"], 100);
}

#[tokio::test]
async fn a_compressed_body_that_asks_for_a_stream_goes_on_as_it_came() {
    let pod = Pod::start().await;
    let events = e2e::event("a") + &e2e::usage_event();
    pod.next(Script::events(&[&events]));
    let router = setup().pods(&[&pod]).start().await;
    let headers = [("Content-Encoding", "gzip")];
    let packed = gzip(&crate::streamed("x"));
    let answer = router.post_with(CHAT, &headers, &packed).await;
    // The engine's own idea, since the router has asked for nothing.
    assert_eq!(answer.text(), events);
    let seen = pod.only();
    assert_eq!(
        (&seen.body, seen.headers.get("content-encoding")),
        (&packed, Some("gzip"))
    );
}

#[tokio::test]
async fn a_compressed_body_whose_model_changes_goes_on_plain() {
    let pod = Pod::start().await;
    let router = setup().server(&[&pod], "  model: other\n").start().await;
    let headers = [("Content-Encoding", "gzip")];
    let packed = gzip(&completion("x"));
    assert_eq!(
        router
            .post_with("/v1/completions", &headers, &packed)
            .await
            .status,
        200
    );
    let seen = pod.only();
    assert_eq!(seen.headers.get("content-encoding"), None);
    assert_eq!(
        String::from_utf8_lossy(&seen.body),
        completion("x").replace("\"m\"", "\"other\"")
    );
}

#[tokio::test]
async fn a_compressed_response_passes_untouched() {
    let pod = Pod::start().await;
    let packed = gzip(&e2e::chat_answer());
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    pod.answers(Script::reply(200, &headers, &packed));
    let router = setup().pods(&[&pod]).start().await;
    let accepts = [("Accept-Encoding", "gzip, br")];
    let answer = router.post_with(CHAT, &accepts, completion("x")).await;
    assert_eq!(answer.body, packed);
    assert_eq!(answer.headers.get("content-encoding"), Some("gzip"));
    assert_eq!(pod.only().headers.get("accept-encoding"), Some("gzip, br"));
}

#[tokio::test]
async fn a_response_without_a_length_ends_with_the_pods_connection() {
    let pod = Pod::start().await;
    pod.answers(
        Script::raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end").then_fin(),
    );
    let router = setup().pods(&[&pod]).start().await;
    let answer = router.chat("x").await;
    assert_eq!(
        (answer.text().as_str(), answer.end),
        ("to the end", End::Whole)
    );
}

#[tokio::test]
async fn a_form_passes_and_only_its_model_changes() {
    let pod = Pod::start().await;
    let router = setup()
        .server(&[&pod], "  model: whisper-large\n")
        .start()
        .await;
    let audio: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let mut form =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
            .to_vec();
    form.extend_from_slice(&audio);
    let tail = "\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let wanted = [
        &form[..],
        tail.replace("\r\nm\r\n", "\r\nwhisper-large\r\n")
            .as_bytes(),
    ]
    .concat();
    form.extend_from_slice(tail.as_bytes());
    let headers = [("Content-Type", "multipart/form-data; boundary=b")];
    let answer = router
        .post_with("/v1/audio/transcriptions", &headers, &form)
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = pod.only();
    assert!(seen.body == wanted, "the form arrives with another model");
    assert_eq!(
        seen.headers.all("content-type"),
        ["multipart/form-data; boundary=b"]
    );
}
