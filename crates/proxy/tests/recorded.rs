//! The relay and the scraper on the bytes of a real vLLM.

use bytes::Bytes;
use proxy::relay::{Facts, Usage, Watch};
use proxy::scrape::{Page, Sample};
use routing::fleet::Engine;

/// Content type and body of a recorded response.
fn body(recorded: &[u8]) -> (String, Vec<u8>) {
    let split = recorded
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a head");
    let head = String::from_utf8_lossy(&recorded[..split]).to_lowercase();
    let kind = head
        .lines()
        .find_map(|l| l.strip_prefix("content-type: "))
        .expect("a type")
        .to_owned();
    let mut rest = &recorded[split + 4..];
    if !head.contains("transfer-encoding: chunked") {
        return (kind, rest.to_vec());
    }
    let mut out = Vec::new();
    loop {
        let end = rest
            .windows(2)
            .position(|w| w == b"\r\n")
            .expect("a chunk size");
        let digits = std::str::from_utf8(&rest[..end]).expect("digits");
        let size = usize::from_str_radix(digits, 16).expect("a chunk size");
        if size == 0 {
            return (kind, out);
        }
        out.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

/// Relays a recorded body in pieces; returns what the client gets and what was learnt.
fn relay(recorded: &[u8], step: usize, hide_usage: bool) -> (Vec<u8>, Facts) {
    let (kind, body) = body(recorded);
    let mut watch = Watch::new(kind.as_bytes(), hide_usage);
    let mut out = Vec::new();
    for piece in body.chunks(step) {
        out.extend_from_slice(&watch.push(Bytes::copy_from_slice(piece)));
    }
    let (rest, facts) = watch.finish();
    out.extend_from_slice(&rest);
    (out, facts)
}

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("recorded/", $name))
    };
}

#[test]
fn every_byte_passes_and_usage_is_seen() {
    let usage = |prompt, completion, total, cached, whole_prompt| {
        Some(Usage {
            prompt,
            completion,
            total,
            cached,
            whole_prompt,
        })
    };
    let cases: [(&str, &[u8], Option<Usage>); 7] = [
        (
            "chat stream",
            recorded!("chat-4-stream-usage.response"),
            usage(55, 8, 63, Some(32), 55),
        ),
        (
            "continuous usage",
            recorded!("completions-5-stream-continuous-usage.response"),
            usage(47, 8, 55, Some(32), 47),
        ),
        (
            "responses stream",
            recorded!("responses-3-stream.response"),
            usage(51, 4, 55, Some(32), 51),
        ),
        (
            "messages stream",
            recorded!("messages-3-stream.response"),
            usage(19, 4, 23, Some(32), 51),
        ),
        (
            "keep-alive comments",
            recorded!("stream-sse-keep-alive-comments-while-queued.response"),
            usage(11, 2, 13, None, 11),
        ),
        (
            "chat",
            recorded!("chat-1-first.response"),
            usage(55, 8, 63, Some(0), 55),
        ),
        (
            "responses",
            recorded!("responses-1.response"),
            usage(32, 8, 40, Some(0), 32),
        ),
    ];
    for (name, bytes, want) in cases {
        for step in [1, 7, 64, 1000, usize::MAX] {
            let (out, facts) = relay(bytes, step, false);
            assert_eq!(out, body(bytes).1, "{name}, pieces of {step}");
            assert_eq!(facts.usage, want, "{name}, pieces of {step}");
            assert!(!facts.gave_up, "{name}, pieces of {step}");
        }
    }
}

#[test]
fn only_the_usage_event_is_hidden() {
    let recorded = recorded!("chat-4-stream-usage.response");
    let all = String::from_utf8(body(recorded).1).unwrap();
    let hidden: Vec<_> = all
        .split_inclusive("\n\n")
        .filter(|event| event.contains("\"choices\":[]"))
        .collect();
    assert_eq!(hidden.len(), 1);
    for step in [1, 13, usize::MAX] {
        assert_eq!(
            relay(recorded, step, true).0,
            all.replace(hidden[0], "").into_bytes(),
            "pieces of {step}"
        );
    }
}

#[test]
fn d5_an_engine_that_dies_politely_has_failed() {
    for (name, bytes) in [
        (
            "killed, stream",
            &recorded!("engine-killed-stream.response")[..],
        ),
        ("shut down, stream", recorded!("sigterm-stream.response")),
        ("shut down", recorded!("sigterm-nonstream.response")),
    ] {
        for step in [11, 4096, usize::MAX] {
            let (out, facts) = relay(bytes, step, true);
            assert_eq!(out, body(bytes).1, "{name}: passed on as it came");
            assert!(facts.gave_up, "{name}, pieces of {step}");
        }
    }
}

#[test]
fn j1_the_real_metrics_pages() {
    let read = |text: &[u8], step: usize| {
        let mut page = Page::new(Engine::Vllm);
        text.chunks(step).for_each(|piece| page.push(piece));
        page.finish()
    };
    let waiting = Sample {
        usage: 0.333_333_333_333_333_37,
        waiting: 6.0,
        running: 2.0,
        ttft: (0.210_333_108_901_977_54, 14.0),
        tpot: (1.223_812_342_998_826_4, 354.0),
        cache_queried: 3100.0,
        cache_hit: Some(192.0),
    };
    for step in [100, 8192, usize::MAX] {
        assert_eq!(read(recorded!("requests-waiting.txt"), step), Some(waiting));
    }
    let two = read(recorded!("two-model-names.txt"), usize::MAX).unwrap();
    assert_eq!(
        (two.running, two.waiting, two.ttft.1, two.tpot.1),
        (0.0, 0.0, 9.0, 4.0)
    );
}
