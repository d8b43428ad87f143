//! The load generator against live engines.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]

#[path = "support/forwarder.rs"]
mod forwarder;
mod support;

use std::{net::SocketAddr, time::Duration};

use forwarder::Policy;
use sim::{
    live::{LiveEngine, LiveOptions},
    load::{EngineSums, Progress, Report, Scenario, demo_engine, play},
    model::EngineParams,
};
use support::{engine, fast};

/// The demo in small, for engines that run a hundred times as fast.
fn quick() -> Scenario {
    Scenario {
        groups: 6,
        users: 24,
        turns: 3,
        system_tokens: 600,
        arrivals_per_second: 400.0,
        think_time: Duration::from_millis(5),
        ..Scenario::demo("tiny")
    }
}

async fn engines(count: usize, params: &EngineParams) -> Vec<LiveEngine> {
    let mut engines = Vec::new();
    for _ in 0..count {
        engines.push(
            engine(
                params.clone(),
                LiveOptions {
                    time_scale: 100.0,
                    ..fast()
                },
            )
            .await,
        );
    }
    engines
}

fn addresses(engines: &[LiveEngine]) -> Vec<SocketAddr> {
    engines.iter().map(LiveEngine::address).collect()
}

#[tokio::test]
async fn the_clients_report_agrees_with_the_engines_counters() {
    let engines = engines(1, &EngineParams::datacentre_7b()).await;
    let address = engines[0].address().to_string();
    let scenario = Scenario {
        engines: vec![address.clone()],
        ..quick()
    };
    let mut last = Progress::default();
    let report = play(&format!("http://{address}/"), &scenario, 5, |progress| {
        assert_eq!(progress.ended, last.ended + 1);
        last = progress;
    })
    .await;
    assert_eq!(
        (report.requests, report.errors, last.planned, last.ended),
        (72, 0, 72, 72),
        "{:?}",
        report.first_error
    );
    let counters = engines[0].stats().counters;
    assert_eq!(report.prompt_tokens, counters.prompt_tokens);
    assert_eq!(report.cached_tokens, counters.prompt_tokens_cached);
    assert_eq!(report.completion_tokens, counters.generation_tokens);
    let pod = &report.pods[0];
    assert_eq!(
        (pod.sums.requests, pod.sums.prefix_hits, pod.request_percent),
        (72, counters.prefix_hits, 100.0)
    );
    // Each group's prompt is computed once, each later turn finds the whole conversation but its newest part.
    let compulsory = 6 * 600;
    assert!(
        report.cached_tokens > (report.prompt_tokens - compulsory) * 85 / 100,
        "{report:?}"
    );
    assert!(report.ttft.p50 <= report.ttft.p99 && report.ttft.mean < report.total.mean);
}

#[tokio::test]
async fn the_offered_load_depends_on_the_seed_alone() {
    let mut prompt_tokens = Vec::new();
    for seed in [1, 1, 2] {
        let engines = engines(1, &EngineParams::datacentre_7b()).await;
        let report = play(&engines[0].address().to_string(), &quick(), seed, |_| {}).await;
        prompt_tokens.push((report.prompt_tokens, report.completion_tokens));
    }
    assert_eq!(prompt_tokens[0], prompt_tokens[1]);
    assert_ne!(prompt_tokens[0], prompt_tokens[2]);
}

async fn played(policy: Policy) -> Report {
    // A pool that holds two or three of the six groups' prompts, as the demo's holds five of twelve.
    let params = EngineParams {
        num_blocks: 111,
        max_model_len: 1_600,
        ..demo_engine()
    };
    let engines = engines(2, &params).await;
    let router = forwarder::start(addresses(&engines), policy).await;
    play(&router.to_string(), &quick(), 3, |_| {}).await
}

#[tokio::test]
async fn keeping_a_group_together_finds_more_in_the_cache() {
    let (blind, kept) = (
        played(Policy::Random(3)).await,
        played(Policy::ByPrefix).await,
    );
    assert_eq!((blind.errors, kept.errors), (0, 0));
    assert!(
        kept.cached_percent() > blind.cached_percent() + 10.0,
        "{} {}",
        kept.cached_percent(),
        blind.cached_percent()
    );
}

#[tokio::test]
async fn a_refused_request_is_an_error_and_ends_its_conversation() {
    let engines = engines(1, &EngineParams::datacentre_7b()).await;
    let scenario = Scenario {
        model: "unknown".to_owned(),
        users: 4,
        ..quick()
    };
    let report = play(&engines[0].address().to_string(), &scenario, 1, |_| {}).await;
    assert_eq!((report.requests, report.errors), (4, 4));
    let error = report.first_error.unwrap();
    assert!(
        error.contains("404") && error.contains("The model `unknown` does not exist"),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_listening_is_an_error() {
    let engines = engines(1, &EngineParams::datacentre_7b()).await;
    let address = engines[0].address().to_string();
    for engine in engines {
        engine.stop(support::PATIENCE).await;
    }
    let report = play(
        &address,
        &Scenario {
            users: 2,
            ..quick()
        },
        1,
        |_| {},
    )
    .await;
    assert_eq!((report.requests, report.errors), (2, 2));
}

#[test]
fn counters_are_read_by_name() {
    let page = "# TYPE vllm:request_success_total counter\n\
        vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"a b\"} 3.0\n\
        vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"a b\"} 4.0\n\
        vllm:request_success_created{engine=\"0\",model_name=\"a b\"} 1.7e+09\n\
        vllm:prefix_cache_queries_total{engine=\"0\"} 1.5e+06\nvllm:prefix_cache_hits_total 12\n";
    assert_eq!(
        EngineSums::parse(page),
        EngineSums {
            requests: 7,
            prefix_queries: 1_500_000,
            prefix_hits: 12
        }
    );
}

#[tokio::test]
async fn the_options_run_an_engine_until_told() {
    let options = sim::cli::SimEngineOptions {
        port: 0,
        live: fast(),
        ..Default::default()
    };
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let (tell, told) = tokio::sync::oneshot::channel();
    let run = tokio::spawn(sim::cli::run(
        options,
        async move {
            let _ = ended.await;
        },
        |address| tell.send(address).unwrap(),
    ));
    let address = told.await.unwrap();
    assert!(address.ip().is_loopback());
    assert_eq!(
        support::replay(address, &support::get("/health"))
            .await
            .status,
        "200 OK"
    );
    end.send(()).unwrap();
    run.await.unwrap().unwrap();
}
