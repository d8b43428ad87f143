//! The live engine answers recorded requests with the shapes of the recorded responses.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]

mod support;

use std::{collections::HashSet, fs, path::Path};

use serde_json::Value;
use support::{Response, engine, fast, recorded_params, replay};

fn recorded(folder: &str) -> Vec<(String, Vec<u8>, Response)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(folder);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "request")
        })
        .collect();
    names.sort();
    assert!(names.len() > 20, "the recordings are there");
    names
        .into_iter()
        .map(|path| {
            let response = Response::parse(&fs::read(path.with_extension("response")).unwrap());
            (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                fs::read(&path).unwrap(),
                response,
            )
        })
        .collect()
}

/// Keys in order and types; the values themselves only where they are words of the API.
fn shape(value: &Value) -> String {
    const WORDS: &[&str] = &[
        "object",
        "type",
        "role",
        "finish_reason",
        "stop_reason",
        "status",
        "owned_by",
        "reason",
    ];
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| match value {
                    Value::String(word) if WORDS.contains(&key.as_str()) => format!("{key}={word}"),
                    value => format!("{key}:{}", shape(value)),
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let mut items: Vec<String> = items.iter().map(shape).collect();
            items.dedup();
            format!("[{}]", items.join(","))
        }
        Value::String(_) => "string".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Null => "null".to_owned(),
    }
}

/// The lines of a stream with the shapes of their data, each shape once.
fn stream_shape(response: &Response) -> Vec<String> {
    let text = response.text();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            match line
                .strip_prefix("data: ")
                .map(serde_json::from_str::<Value>)
            {
                Some(Ok(value)) => format!("data {}", shape(&value)),
                _ => line.to_owned(),
            }
        })
        .collect();
    // A named event takes two lines.
    let mut events: Vec<String> = Vec::new();
    for line in lines.drain(..) {
        match events.last_mut() {
            Some(last) if last.starts_with("event: ") && !last.contains('\n') => {
                *last = format!("{last}\n{line}")
            }
            _ => events.push(line),
        }
    }
    // Choices may interleave, so only an event's first place counts.
    let mut seen = HashSet::new();
    events.retain(|event| seen.insert(event.clone()));
    events
}

fn same_head(name: &str, got: &Response, wanted: &Response) {
    assert_eq!(got.status, wanted.status, "{name}: {}", got.text());
    for header in [
        "content-type",
        "allow",
        "server",
        "vary",
        "transfer-encoding",
    ] {
        assert_eq!(
            got.header(header),
            wanted.header(header),
            "{name}: {header}"
        );
    }
}

#[tokio::test]
async fn answers_have_the_recorded_shapes() {
    let engine = engine(recorded_params(), fast()).await;
    for (name, request, wanted) in recorded("answers") {
        let got = replay(engine.address(), &request).await;
        same_head(&name, &got, &wanted);
        if wanted.header("transfer-encoding").is_some() {
            assert_eq!(stream_shape(&got), stream_shape(&wanted), "{name}");
            for chunk in &got.chunks {
                assert!(
                    chunk.ends_with(b"\n\n")
                        && chunk.windows(2).filter(|two| two == b"\n\n").count() == 1,
                    "{name}"
                );
            }
        } else if wanted.body.is_empty() {
            assert!(got.body.is_empty(), "{name}");
        } else {
            assert_eq!(shape(&got.json()), shape(&wanted.json()), "{name}");
        }
    }
}

#[tokio::test]
async fn errors_are_the_recorded_ones() {
    let engine = engine(recorded_params(), fast()).await;
    for (name, request, wanted) in recorded("errors") {
        let got = replay(engine.address(), &request).await;
        same_head(&name, &got, &wanted);
        if wanted.status.starts_with('2') {
            assert_eq!(shape(&got.json()), shape(&wanted.json()), "{name}");
        } else {
            assert_eq!(got.text(), wanted.text(), "{name}");
            assert_eq!(got.header("location"), wanted.header("location"), "{name}");
        }
    }
}

#[tokio::test]
async fn metrics_families_are_the_recorded_ones() {
    let engine = engine(recorded_params(), fast()).await;
    let chat = recorded("answers")
        .into_iter()
        .find(|(name, ..)| name == "chat-1-first")
        .unwrap();
    replay(engine.address(), &chat.1).await;
    let page = replay(engine.address(), &support::get("/metrics")).await;
    assert_eq!(
        page.header("content-type"),
        Some("text/plain; version=1.0.0; charset=utf-8")
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/metrics/vllm.txt");
    let wanted = fs::read_to_string(file).unwrap();
    // A sample without its value; of the long configuration line only the name.
    let sample = |line: &str| {
        let series = line.rsplit_once(' ').map_or(line, |(series, _)| series);
        if series.starts_with("vllm:cache_config_info") {
            "vllm:cache_config_info".to_owned()
        } else {
            series.to_owned()
        }
    };
    let known: Vec<String> = wanted.lines().map(sample).collect();
    let mut samples = 0;
    for line in page
        .text()
        .lines()
        .filter(|line| !line.starts_with("# HELP"))
    {
        if line.starts_with("# TYPE") {
            assert!(wanted.lines().any(|known| known == line), "{line}");
        } else {
            samples += 1;
            assert!(known.contains(&sample(line)), "{line}");
        }
    }
    assert!(samples > 150, "{samples}");
    for name in [
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "cache_config_info",
    ] {
        assert!(page.text().contains(&format!("\nvllm:{name}{{")), "{name}");
    }
    assert!(page.text().contains(
        "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"tiny\"} 1.0\n"
    ));
    assert!(page.text().contains(
        "vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"tiny\"} 7.0\n"
    ));
}

#[tokio::test]
async fn cached_tokens_are_the_recorded_ones() {
    let engine = engine(recorded_params(), fast()).await;
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/cached-tokens-by-length.csv");
    let table = fs::read_to_string(file).unwrap();
    for (row, line) in table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .enumerate()
    {
        let numbers: Vec<usize> = line
            .split(',')
            .map(|number| number.parse().unwrap())
            .collect();
        // Prompts of different rows share nothing.
        let prompt = |length: usize| -> Vec<usize> {
            (0..length).map(|at| 1_000 * (row + 1) + at).collect()
        };
        let length = numbers[0];
        for (wanted, length) in [
            (numbers[1], length),
            (numbers[2], length),
            (numbers[3], length + 40),
        ] {
            let body =
                serde_json::json!({"model": "tiny", "prompt": prompt(length), "max_tokens": 1});
            let got = replay(engine.address(), &support::post("/v1/completions", &body))
                .await
                .json();
            assert_eq!(
                got["usage"]["prompt_tokens_details"]["cached_tokens"], wanted,
                "{line}"
            );
        }
    }
}
