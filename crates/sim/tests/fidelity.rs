//! A replay and the live engine count the same: what was replayed is what usage and `/metrics` would have said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use routing::schedule::SchedulerConfig;
use serde_json::json;
use sim::live::LiveEngine;
use sim::model::EngineParams;
use sim::replay::{Choice, Content, Generator, Setup, Workload, generate, replay};
use support::{engine, fast, get, post, replay as send};

/// A pool so small that blocks are dropped.
fn small_engine() -> EngineParams {
    EngineParams {
        num_blocks: 600,
        max_model_len: 8_192,
        ..EngineParams::datacentre_7b()
    }
}

/// Requests so far apart that one is at a time, as a client that waits for each answer sends them.
fn one_at_a_time(kind: Generator) -> Workload {
    let mut workload = generate(kind, 60, 1.0, 3);
    for (number, request) in workload.requests.iter_mut().enumerate() {
        request.at = number as f64 * 1_000.0;
        request.answer.tokens = 1 + request.answer.tokens % 20;
    }
    workload
}

async fn counted(engine: &LiveEngine, name: &str) -> u64 {
    let page = send(engine.address(), &get("/metrics")).await.text();
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("vllm:{name}{{")));
    let value = line.and_then(|line| line.rsplit_once(' ')).unwrap().1;
    value.parse::<f64>().unwrap() as u64
}

#[tokio::test]
async fn usage_and_metrics_of_a_live_engine_agree_with_the_replay() {
    for kind in [Generator::Repetition, Generator::SharedPrefix] {
        let workload = one_at_a_time(kind);
        let setup = Setup {
            pods: 1,
            engine: small_engine(),
            ..Setup::default()
        };
        let config = SchedulerConfig::default();
        let choice = Choice::Plugins(&config);
        let outcome = replay("", &workload, &setup, choice, &mut |_| {}).unwrap();
        assert!(outcome.block_evictions > 0, "the pool is too large to tell");

        let engine = engine(small_engine(), fast()).await;
        let (mut prompt_tokens, mut cached, mut completion) = (0, 0, 0);
        for request in &workload.requests {
            let Content::Made { segments, .. } = &request.content else {
                panic!("made");
            };
            let mut prompt = Vec::new();
            segments
                .iter()
                .for_each(|segment| segment.write(&mut prompt));
            let body = json!({
                "model": "tiny",
                "prompt": String::from_utf8(prompt).unwrap(),
                "max_tokens": request.answer.tokens,
                "ignore_eos": true,
            });
            let answer = send(engine.address(), &post("/v1/completions", &body))
                .await
                .json();
            let usage = &answer["usage"];
            prompt_tokens += usage["prompt_tokens"].as_u64().unwrap();
            completion += usage["completion_tokens"].as_u64().unwrap();
            cached += usage["prompt_tokens_details"]["cached_tokens"]
                .as_u64()
                .unwrap_or(0);
        }
        let run = &outcome.summary;
        assert_eq!(
            (prompt_tokens, completion, cached),
            (run.prompt_tokens, run.completion_tokens, run.cached_tokens),
            "{kind:?}: usage"
        );
        assert_eq!(
            (
                counted(&engine, "prefix_cache_queries_total").await,
                counted(&engine, "prefix_cache_hits_total").await
            ),
            (outcome.prefix_queries, outcome.prefix_hits),
            "{kind:?}: metrics"
        );
    }
}
