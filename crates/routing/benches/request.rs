//! What one request costs before it is routed: extract, the walk that feeds the hash chain, and the character count.
//!
//! Bodies are chats with line breaks and quotes as escapes, as clients send code and prose.
#![allow(missing_docs, reason = "criterion's macro makes public items")]
#![allow(clippy::unwrap_used, reason = "a bench may stop")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use routing::request::extract;
use std::fmt::Write;
use std::hint::black_box;
use std::ops::ControlFlow;

const CHAT: &str = "/v1/chat/completions";

/// Bytes that the default configuration hashes: 128 blocks of 64.
const HASHED: usize = 128 * 64;

/// A chat of about `size` bytes. An escape stands about every 40 bytes, a turn has at most 4 KiB.
fn chat(size: usize, line: &str) -> String {
    let mut body = String::from(
        r#"{"model":"qwen/qwen3-8b","stream":true,"messages":[{"role":"system","content":"You help."}"#,
    );
    while body.len() + 120 < size {
        body.push_str(r#",{"role":"user","content":""#);
        let end = size.saturating_sub(90).min(body.len() + 4096);
        while body.len() < end {
            body.push_str(line);
        }
        body.push_str(r#""}"#);
    }
    write!(body, r#"],"temperature":0.7,"max_tokens":256}}"#).unwrap();
    body
}

fn benches(c: &mut Criterion) {
    let escaped = r#"let greeting = \"hello, world\"; // a line of code that ends\n"#;
    let sizes = [
        ("504 B", 504),
        ("8 KiB", 8 << 10),
        ("64 KiB", 64 << 10),
        ("1 MiB", 1 << 20),
    ];
    for (kind, line) in [
        ("escaped", escaped),
        ("plain", "a sentence without anything to escape in it, "),
        ("chinese", "北京是中国的首都，人口众多。\\n"),
    ] {
        let mut group = c.benchmark_group(kind);
        for (name, size) in sizes {
            let body = chat(size, line);
            let body = body.as_bytes();
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_function(BenchmarkId::new("extract", name), |b| {
                b.iter(|| extract(CHAT, None, black_box(body)).unwrap().stream)
            });
            let request = extract(CHAT, None, body).unwrap();
            group.bench_function(BenchmarkId::new("walk to the block limit", name), |b| {
                b.iter(|| {
                    let mut seen = 0;
                    black_box(&request.prompt).walk(|piece| {
                        seen += black_box(piece).len();
                        if seen < HASHED {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    });
                    seen
                })
            });
            group.bench_function(BenchmarkId::new("characters", name), |b| {
                b.iter(|| black_box(&request.prompt).characters())
            });
        }
        group.finish();
    }
}

criterion_group!(request, benches);
criterion_main!(request);
