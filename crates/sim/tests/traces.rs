//! Traces as they are found: cut, marked, packed, with times and lengths that cannot be; and what a recording says of tokens and models.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use routing::schedule::SchedulerConfig;
use serde_json::{Value, json};
use sim::model::EngineParams;
use sim::replay::{Choice, Happening, Outcome, Setup, SetupError, TraceError, Workload, replay};
use std::error::Error as _;

const GOOD: &str =
    "{\"timestamp\": 0, \"input_length\": 900, \"output_length\": 5, \"hash_ids\": [0, 1]}\n";

fn read(text: impl AsRef<[u8]>) -> Result<Workload, TraceError> {
    Workload::read("trace", text.as_ref())
}

fn try_play(workload: &Workload, setup: &Setup) -> Result<Outcome, SetupError> {
    let config = SchedulerConfig::default();
    replay("", workload, setup, Choice::Plugins(&config), &mut |_| {})
}

fn play(workload: &Workload) -> Outcome {
    let setup = Setup {
        pods: 1,
        ..Setup::default()
    };
    try_play(workload, &setup).unwrap()
}

fn log(lines: &[Value]) -> Workload {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    read(lines.collect::<String>()).unwrap()
}

fn completion(at: f64, model: &str, prompt: &str, tokens: Option<u64>) -> Value {
    json!({"at": at, "path": "/v1/completions", "prompt_tokens": tokens, "output_tokens": 3,
        "body": {"model": model, "prompt": prompt}})
}

#[test]
fn lines_that_end_in_the_middle_are_left_out_and_told() {
    let torn = &GOOD[..40];
    let workload = read(format!("{GOOD}{torn}\n{GOOD}{torn}")).unwrap();
    assert_eq!(
        (workload.requests.len(), &workload.cut_lines[..]),
        (2, &[2, 4][..])
    );
    assert!(matches!(read(torn), Err(TraceError::Empty)));
}

#[test]
fn marks_blank_lines_and_line_ends_of_editors_do_no_harm() {
    let marked = format!("\u{feff}\r\n \n{}\r\n{GOOD}", GOOD.trim_end());
    let workload = read(marked).unwrap();
    assert_eq!((workload.requests.len(), workload.cut_lines.len()), (2, 0));
}

#[test]
fn what_is_no_trace_is_told_with_its_place() {
    let says = |text: &[u8]| read(text).unwrap_err().to_string();
    assert_eq!(
        says(format!("{GOOD}x").as_bytes()),
        "line 2: expected value (column 1)"
    );
    assert_eq!(
        says(b"{\"timestamp\": 0, \"input_length\": 9.5, \"output_length\": 5, \"hash_ids\": [0]}"),
        "line 1: invalid type: floating point `9.5`, expected u32 (column 36)"
    );
    assert!(says(&[0x1f, 0x8b, 8, 0]).contains("gzip -dc"));
    assert!(says(b"\n\xff\xfe").starts_with("line 2: "));
    let error = Workload::read(
        "dir",
        std::io::BufReader::new(std::fs::File::open("/").unwrap()),
    );
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read line 1",
        "the cause is the source, told once"
    );
    assert!(error.source().is_some());
}

#[test]
fn lengths_beyond_any_engine_cost_no_memory() {
    let endless = GOOD.replace(": 5,", ": 4294967295,");
    let run = play(&read(endless).unwrap()).summary;
    assert_eq!((run.requests, run.failed), (1, 1));
    let says = |text: &str| read(text).unwrap_err().to_string();
    assert!(says(&GOOD.replace("900", "4000000000")).contains("more than a prompt may have"));
    let block = "{\"at\":1,\"path\":\"/v1/completions\",\"redacted\":{\"model\":\"m\",\"bytes\":4000000000,\"block_bytes\":4000000000,\"blocks\":[\"1\"]}}";
    assert!(says(block).contains("more than a prompt may have"));
    let huge = |params: EngineParams| {
        let engine = EngineParams { ..params };
        let setup = Setup {
            engine,
            ..Setup::default()
        };
        let error = try_play(&read(GOOD).unwrap(), &setup).unwrap_err();
        error.source().unwrap().to_string()
    };
    let usual = EngineParams::datacentre_8b_long;
    assert_eq!(
        huge(EngineParams {
            num_blocks: 5_000_000_000,
            ..usual()
        }),
        "num_blocks is 5000000000: 4194304 is the most"
    );
    assert_eq!(
        huge(EngineParams {
            block_size: 1 << 40,
            ..usual()
        }),
        "block_size is 1099511627776: 16384 is the most"
    );
    assert!(
        huge(EngineParams {
            weight_read: 1e9,
            ..usual()
        })
        .starts_with("weight_read")
    );
}

#[test]
fn times_of_another_unit_are_named_instead_of_played_for_ever() {
    let late = GOOD.replace("\"timestamp\": 0", "\"timestamp\": 1764480000000");
    let workload = read(format!("{GOOD}{late}")).unwrap();
    let error = try_play(&workload, &Setup::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("its requests span 20422 days"),
        "{error}"
    );
    let setup = Setup {
        scrape_interval: 1e-9,
        ..Setup::default()
    };
    let error = try_play(&read(GOOD).unwrap(), &setup).unwrap_err();
    assert_eq!(error, SetupError::ScrapeInterval);
}

#[test]
fn readings_of_a_long_trace_are_thinned() {
    let days = 20.0 * 86_400.0;
    let late = GOOD.replace(
        "\"timestamp\": 0",
        &format!("\"timestamp\": {}", days * 1000.0),
    );
    let outcome = play(&read(format!("{GOOD}{late}")).unwrap());
    assert_eq!(outcome.summary.requests, 2);
    let [load] = &outcome.series.load[..] else {
        panic!("one pod");
    };
    assert_eq!(load.len(), 120);
    assert!(load.iter().all(Option::is_some), "no gap");
}

#[test]
fn an_engine_that_crashes_again_while_it_is_away_stays_away() {
    let second = |n: u32| GOOD.replace("\"timestamp\": 0", &format!("\"timestamp\": {}", n * 1000));
    let workload = read((0..60).map(second).collect::<String>()).unwrap();
    let failed = |events: &[&str]| {
        let happenings = events.iter().map(|e| e.parse::<Happening>().unwrap());
        let setup = Setup {
            pods: 1,
            happenings: happenings.collect(),
            ..Setup::default()
        };
        try_play(&workload, &setup).unwrap().summary.failed
    };
    assert_eq!(failed(&["restart:0@10.5+20"]), 20);
    assert_eq!(failed(&["restart:0@10.5+5", "restart:0@11.5+20"]), 21);
}

#[test]
fn models_share_pods_but_no_cache_entries() {
    let prompt = "the same words for all ".repeat(200);
    let lines = |models: [&str; 2]| {
        let line = |(n, model): (usize, &str)| completion(n as f64, model, &prompt, None);
        log(&models.into_iter().enumerate().map(line).collect::<Vec<_>>())
    };
    assert!(play(&lines(["m", "m"])).summary.cached_tokens > 0);
    assert_eq!(play(&lines(["m", "n"])).summary.cached_tokens, 0);
    let config = SchedulerConfig::default();
    let oracle = |workload: &Workload| {
        let setup = Setup {
            pods: 2,
            ..Setup::default()
        };
        replay("", workload, &setup, Choice::Oracle, &mut |_| {})
            .unwrap()
            .summary
    };
    let same = oracle(&lines(["m", "m"]));
    assert_eq!(
        same.predicted_tokens,
        Some(same.cached_tokens),
        "{config:?}"
    );
    assert!(same.cached_tokens > 0);
    assert_eq!(oracle(&lines(["m", "n"])).predicted_tokens, Some(0));
}

/// 64 bytes a block, as the router redacts them.
fn redacted(at: f64, bytes: usize, tokens: u64) -> Value {
    let blocks: Vec<_> = (0..bytes.div_ceil(64))
        .map(|n| format!("{n:016x}"))
        .collect();
    json!({"at": at, "path": "/v1/completions", "prompt_tokens": tokens, "output_tokens": 3,
        "redacted": {"model": "0a", "bytes": bytes, "block_bytes": 64, "blocks": blocks}})
}

#[test]
fn prompts_have_the_tokens_that_the_engines_reported() {
    // Two bytes a token, and ten: no tokenizer of ours would guess it.
    for bytes_a_token in [2, 10] {
        let prompt = "0123456789".repeat(640);
        let tokens = (prompt.len() / bytes_a_token) as u64;
        let plain = log(&[
            completion(0.0, "m", &prompt, Some(tokens)),
            completion(9.0, "m", &prompt, Some(tokens)),
        ]);
        let hidden = log(&[
            redacted(0.0, prompt.len(), tokens),
            redacted(9.0, prompt.len(), tokens),
        ]);
        let [plain, hidden] = [plain, hidden].map(|workload| play(&workload).summary);
        assert_eq!(plain.prompt_tokens, 2 * tokens);
        assert_eq!(
            plain.cached_tokens,
            (tokens - 1) / 16 * 16,
            "the second finds the first"
        );
        assert_eq!(
            (
                plain.prompt_tokens,
                plain.cached_tokens,
                plain.predicted_tokens
            ),
            (
                hidden.prompt_tokens,
                hidden.cached_tokens,
                hidden.predicted_tokens
            ),
            "redacted or not"
        );
    }
}

#[test]
fn a_prompt_without_text_is_served_all_the_same() {
    let lines = [
        json!({"at": 1, "path": "/v1/completions", "output_tokens": 2, "body": {"model": "m", "prompt": ""}}),
        json!({"at": 2, "path": "/v1/audio/speech", "body": {"model": "m"}}),
    ];
    let run = play(&log(&lines)).summary;
    assert_eq!((run.requests, run.failed), (2, 0));
}
