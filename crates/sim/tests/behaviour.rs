//! What a client sees of the live engine beside the answers: disconnects, queueing, idle connections, shutdown.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::{
    live::{EngineKind, LiveOptions},
    model::EngineParams,
};
use support::{PATIENCE, Response, engine, fast, get, post, replay, until};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// An engine on which nothing moves: one step takes an hour.
fn frozen() -> EngineParams {
    EngineParams {
        step_overhead: 3_600.0,
        ..EngineParams::datacentre_7b()
    }
}

fn real_time() -> LiveOptions {
    LiveOptions {
        time_scale: 1.0,
        ..fast()
    }
}

fn chat(max_tokens: usize, stream: bool) -> Value {
    json!({"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens, "stream": stream})
}

async fn send(engine: &sim::live::LiveEngine, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(engine.address()).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

/// Reads until the text holds `mark`.
async fn read_to(stream: &mut TcpStream, mark: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(mark) {
        let read = timeout(PATIENCE, stream.read(&mut buffer))
            .await
            .expect("bytes in time")
            .unwrap();
        assert!(read > 0, "closed before {mark:?}: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    text
}

async fn read_all(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .expect("an end in time")
        .unwrap();
    Response::parse(&bytes)
}

#[tokio::test]
async fn the_head_of_a_stream_leaves_before_its_first_token() {
    let engine = engine(frozen(), real_time()).await;
    let mut stream = send(&engine, &post("/v1/chat/completions", &chat(4, true))).await;
    let head = read_to(&mut stream, "\r\n\r\n").await;
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("data:"),
        "{head}"
    );
}

#[tokio::test]
async fn a_disconnect_aborts_the_request_stream_or_not() {
    for streamed in [true, false] {
        let engine = engine(frozen(), real_time()).await;
        let stream = send(&engine, &post("/v1/chat/completions", &chat(4, streamed))).await;
        until(|| engine.stats().load.running == 1).await;
        drop(stream);
        until(|| engine.stats().load.running == 0).await;
        assert_eq!(engine.stats().load.kv_usage, 0.0);
    }
}

#[tokio::test]
async fn a_half_close_is_a_disconnect() {
    let engine = engine(frozen(), real_time()).await;
    let mut stream = send(&engine, &post("/v1/chat/completions", &chat(4, false))).await;
    until(|| engine.stats().load.running == 1).await;
    stream.shutdown().await.unwrap();
    until(|| engine.stats().load.running == 0).await;
    let mut rest = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .expect("closed in time")
        .unwrap();
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_full_queue_refuses_with_503_on_every_api() {
    let params = EngineParams {
        max_num_seqs: 1,
        max_num_queued_reqs: Some(1),
        ..frozen()
    };
    let engine = engine(params, real_time()).await;
    let _running = send(&engine, &post("/v1/chat/completions", &chat(4, false))).await;
    until(|| engine.stats().load.running == 1).await;
    let _waiting = send(&engine, &post("/v1/chat/completions", &chat(4, false))).await;
    until(|| engine.stats().load.waiting == 1).await;
    const BUSY: &str = "The engine is currently busy and cannot accept new requests. Please try again later or on a \
                        different instance.";
    for path in ["/v1/chat/completions", "/v1/messages"] {
        let refused = replay(engine.address(), &post(path, &chat(4, true))).await;
        assert_eq!(refused.status, "503 Service Unavailable");
        assert_eq!(refused.json()["error"]["message"], BUSY);
        assert_eq!(refused.json().get("type").is_some(), path == "/v1/messages");
    }
    assert_eq!(engine.stats().counters.rejected, 2);
    assert_eq!(
        replay(engine.address(), &get("/health")).await.status,
        "200 OK"
    );
    // A reset while a request runs is refused, and says so under a 200.
    let reset = replay(engine.address(), &post("/reset_prefix_cache", &json!({}))).await;
    assert_eq!(
        (reset.status.as_str(), reset.text().as_str()),
        ("200 OK", r#"{"success":false}"#)
    );
}

#[tokio::test]
async fn a_prompt_over_the_window_is_refused_before_any_event() {
    let params = EngineParams {
        max_model_len: 64,
        ..EngineParams::datacentre_7b()
    };
    let engine = engine(params, fast()).await;
    let long: Vec<u32> = (100..200).collect();
    let refused = replay(
        engine.address(),
        &post(
            "/v1/completions",
            &json!({"prompt": long, "max_tokens": 1, "stream": true}),
        ),
    )
    .await;
    assert_eq!(refused.status, "400 Bad Request");
    assert_eq!(
        refused.json(),
        json!({"error": {"message": "This model's maximum context length is 64 tokens. However, your prompt contains 100 \
            input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input \
            prompt. (parameter=input_tokens, value=100)", "type": "BadRequestError", "param": "input_tokens", "code": 400}})
    );
    let content = "word ".repeat(80);
    let body = json!({"messages": [{"role": "user", "content": content}]});
    let refused = replay(engine.address(), &post("/v1/chat/completions", &body)).await;
    assert!(
        refused.text().contains("contains at least 65 input tokens"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn shutdown_ends_requests_in_flight_with_abort() {
    let engine = engine(frozen(), real_time()).await;
    let mut whole = send(
        &engine,
        &post("/v1/completions", &json!({"prompt": "a", "max_tokens": 9})),
    )
    .await;
    let mut streamed = send(&engine, &post("/v1/chat/completions", &chat(9, true))).await;
    let idle = send(&engine, b"").await;
    until(|| engine.stats().load.running + engine.stats().load.waiting == 2).await;
    let address = engine.address();
    let stopped = tokio::spawn(engine.stop(PATIENCE));
    let whole = read_all(&mut whole).await;
    assert_eq!(
        (
            whole.status.as_str(),
            &whole.json()["choices"][0]["finish_reason"]
        ),
        ("200 OK", &json!("abort"))
    );
    let streamed = read_all(&mut streamed).await;
    assert!(
        streamed.text().contains(r#""finish_reason":"abort""#),
        "{}",
        streamed.text()
    );
    assert!(streamed.text().ends_with("data: [DONE]\n\n"));
    drop(idle);
    timeout(PATIENCE, stopped)
        .await
        .expect("stopped in time")
        .unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "refused after the end"
    );
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_last_response_only() {
    let options = LiveOptions {
        keep_alive: Duration::from_millis(20),
        ..fast()
    };
    let engine = engine(EngineParams::datacentre_7b(), options).await;
    let mut silent = TcpStream::connect(engine.address()).await.unwrap();
    let mut used = send(&engine, &get("/version")).await;
    let response = read_all(&mut used).await;
    assert_eq!(response.text(), r#"{"version":"0.32.0"}"#);
    assert_eq!(response.header("connection"), None);
    // The one that never asked was there before and is still there.
    silent.write_all(&get("/version")).await.unwrap();
    assert!(
        read_to(&mut silent, "0.32.0")
            .await
            .starts_with("HTTP/1.1 200")
    );
}

#[tokio::test]
async fn a_long_answer_does_not_count_as_idle() {
    // The second answer takes longer than the connection may be idle; the first one started the clock.
    let params = EngineParams {
        step_overhead: 0.6,
        ..EngineParams::datacentre_7b()
    };
    let options = LiveOptions {
        keep_alive: Duration::from_millis(400),
        ..real_time()
    };
    let engine = engine(params, options).await;
    let mut stream = send(&engine, &get("/version")).await;
    read_to(&mut stream, "0.32.0").await;
    stream
        .write_all(&post("/v1/chat/completions", &chat(1, false)))
        .await
        .unwrap();
    let answer = read_to(&mut stream, "\"metrics\":null}").await;
    assert!(
        !answer.to_lowercase().contains("connection: close"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_stop_string_is_held_back_and_named() {
    let engine = engine(EngineParams::datacentre_7b(), fast()).await;
    let body = json!({"prompt": "tell me", "max_tokens": 200});
    let free = replay(engine.address(), &post("/v1/completions", &body))
        .await
        .json();
    let text = free["choices"][0]["text"].as_str().unwrap().to_owned();
    let stop = &text[text.len() / 2..text.len() / 2 + 5];
    let kept = &text[..text.find(stop).unwrap()];
    let body = json!({"prompt": "tell me", "max_tokens": 200, "stop": [stop], "stream": true});
    let stopped = replay(engine.address(), &post("/v1/completions", &body)).await;
    let events: Vec<Value> = stopped
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect();
    let streamed: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(streamed, kept);
    let last = &events.last().unwrap()["choices"][0];
    assert_eq!(
        (&last["finish_reason"], &last["stop_reason"]),
        (&json!("stop"), &json!(stop))
    );
}

#[tokio::test]
async fn equal_seeds_give_equal_answers() {
    let mut texts = Vec::new();
    for seed in [1, 1, 2] {
        let engine = engine(
            EngineParams::datacentre_7b(),
            LiveOptions { seed, ..fast() },
        )
        .await;
        let body = json!({"messages": [{"role": "user", "content": "hi"}]});
        let answer = replay(engine.address(), &post("/v1/chat/completions", &body))
            .await
            .json();
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        texts.push((answer["id"].clone(), answer["choices"].clone()));
    }
    assert_eq!(texts[0], texts[1]);
    assert_ne!(texts[0], texts[2]);
}

#[tokio::test]
async fn sglang_names_are_those_a_router_reads() {
    let options = LiveOptions {
        engine: EngineKind::Sglang,
        ..fast()
    };
    let engine = engine(EngineParams::datacentre_7b(), options).await;
    replay(
        engine.address(),
        &post("/v1/chat/completions", &chat(3, false)),
    )
    .await;
    let page = replay(engine.address(), &get("/metrics")).await.text();
    for line in [
        "sglang:token_usage{model_name=\"tiny\"} 0.0",
        "sglang:num_queue_reqs{model_name=\"tiny\"} 0.0",
        "sglang:num_running_reqs{model_name=\"tiny\"} 0.0",
        "sglang:time_to_first_token_seconds_count{model_name=\"tiny\"} 1.0",
        "sglang:inter_token_latency_seconds_count{model_name=\"tiny\"} 2.0",
    ] {
        assert!(page.lines().any(|known| known == line), "{line}\n{page}");
    }
    assert!(!page.contains("vllm:"));
}
