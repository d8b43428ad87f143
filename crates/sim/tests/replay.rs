//! Replays: the same to the last digit, nothing lost, and what happens to pods.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use routing::schedule::SchedulerConfig;
use serde_json::json;
use sim::model::EngineParams;
use sim::replay::{
    Choice, Generator, Happening, Outcome, Setup, SetupError, Shaping, What, Workload, generate,
    page, replay,
};

fn config(scheduler: &serde_json::Value) -> SchedulerConfig {
    SchedulerConfig::from_value(scheduler).unwrap().0
}

fn only(plugin: &str) -> SchedulerConfig {
    config(&json!({"plugins": {"Score": {"enabled": [{"name": plugin, "weight": 1}]}}}))
}

fn play(workload: &Workload, setup: &Setup, choice: Choice<'_>) -> Outcome {
    replay("run", workload, setup, choice, &mut |_| {}).unwrap()
}

fn defaults(workload: &Workload, setup: &Setup) -> Outcome {
    play(
        workload,
        setup,
        Choice::Plugins(&SchedulerConfig::default()),
    )
}

fn four_pods() -> Setup {
    Setup {
        pods: 4,
        ..Setup::default()
    }
}

fn happens(events: &[&str]) -> Setup {
    let happenings = events.iter().map(|e| e.parse::<Happening>().unwrap());
    Setup {
        happenings: happenings.collect(),
        ..four_pods()
    }
}

const KINDS: [Generator; 5] = [
    Generator::SharedPrefix,
    Generator::Repetition,
    Generator::Chat,
    Generator::NoSharing,
    Generator::Siblings,
];

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for kind in KINDS {
        let bytes = |seed: u64| {
            let setup = Setup {
                seed,
                ..happens(&["restart:1@20s+5s", "leave:2@30s", "join@40s"])
            };
            let outcome = defaults(&generate(kind, 300, 6.0, 1), &setup);
            let page = page("about", std::slice::from_ref(&outcome));
            (outcome.json().to_string(), page)
        };
        assert_eq!(bytes(7), bytes(7), "{kind:?}");
        assert_ne!(bytes(7).0, bytes(8).0, "{kind:?}: the draws matter");
    }
}

#[test]
fn every_request_ends_once_and_every_token_is_counted_once() {
    for kind in KINDS {
        let workload = generate(kind, 400, 8.0, 2);
        for (name, choice) in [
            ("random", Choice::Plugins(&only("random"))),
            ("default", Choice::Plugins(&SchedulerConfig::default())),
            ("oracle", Choice::Oracle),
        ] {
            let outcome = play(&workload, &four_pods(), choice);
            let run = &outcome.summary;
            assert_eq!((run.requests, run.failed), (400, 0), "{name} {kind:?}");
            // Each engine counts a prompt once, when it takes it: as vLLM's prefix_cache_queries and prefix_cache_hits.
            assert_eq!(outcome.prefix_queries, run.prompt_tokens, "{name} {kind:?}");
            assert_eq!(outcome.prefix_hits, run.cached_tokens, "{name} {kind:?}");
            let asked: u64 = workload
                .requests
                .iter()
                .map(|r| u64::from(r.answer.tokens))
                .sum();
            assert_eq!(run.completion_tokens, asked, "{name} {kind:?}");
            assert!(
                run.cached_tokens < run.prompt_tokens,
                "the last token is always computed"
            );
            assert_eq!(run.cached_tokens % 16, 0, "a cache holds whole blocks");
        }
    }
}

#[test]
fn requests_are_conserved_when_engines_crash_and_pods_come_and_go() {
    let workload = generate(Generator::Chat, 600, 12.0, 3);
    let setup = happens(&[
        "restart:0@10s+10s",
        "restart:1@20s+5s",
        "leave:3@15s",
        "join@25s",
    ]);
    let outcome = defaults(&workload, &setup);
    let run = &outcome.summary;
    assert_eq!(run.requests, 600);
    assert!(
        (1..60).contains(&run.failed),
        "answers under way are cut: {}",
        run.failed
    );
    assert!(
        outcome.prefix_queries >= run.prompt_tokens,
        "what a crashed engine had taken was asked again elsewhere"
    );
    let on_new: f64 = outcome.series.load[4].iter().flatten().sum();
    assert!(on_new > 0.0, "the pod that joined gets requests");
    let buckets = &outcome.series.load[3];
    assert_eq!(
        buckets.iter().flatten().last(),
        Some(&0.0),
        "the pod that left gets none"
    );
}

#[test]
fn a_restarted_engine_has_lost_what_the_router_expects_there() {
    let workload = generate(Generator::SharedPrefix, 500, 6.0, 4);
    let calm = defaults(&workload, &four_pods()).summary;
    let shaken = happens(&[
        "restart:0@40s+1s",
        "restart:1@40s+1s",
        "restart:2@40s+1s",
        "restart:3@40s+1s",
    ]);
    let shaken = defaults(&workload, &shaken).summary;
    let gap = |run: &sim::report::Summary| {
        run.predicted_tokens.unwrap() as f64 / run.cached_tokens as f64
    };
    assert!(gap(&shaken) > gap(&calm), "{} {}", gap(&shaken), gap(&calm));
}

#[test]
fn when_all_pods_are_gone_requests_fail_and_the_replay_ends() {
    let workload = generate(Generator::NoSharing, 100, 10.0, 5);
    let setup = Setup {
        pods: 1,
        ..happens(&["leave:0@5s"])
    };
    let run = defaults(&workload, &setup).summary;
    assert_eq!(run.requests, 100);
    assert!(run.failed > 30, "{}", run.failed);
    let setup = Setup {
        pods: 1,
        ..happens(&["restart:0@5s+100h"])
    };
    let run = defaults(&workload, &setup).summary;
    assert_eq!(run.requests, 100);
}

#[test]
fn routing_by_prefix_beats_chance_and_the_oracle_beats_both() {
    let workload = generate(Generator::SharedPrefix, 700, 3.0, 6);
    let setup = Setup {
        // Sixteen of the 32 prefixes of 6,000 tokens do not fit in the cache of one pod.
        engine: EngineParams {
            num_blocks: 6_600,
            max_model_len: 32_768,
            ..EngineParams::datacentre_8b_long()
        },
        ..four_pods()
    };
    let random = play(&workload, &setup, Choice::Plugins(&only("random"))).summary;
    let default = defaults(&workload, &setup).summary;
    let oracle = play(&workload, &setup, Choice::Oracle).summary;
    assert!(
        random.cached_percent() + 10.0 < default.cached_percent(),
        "{random:?} {default:?}"
    );
    assert!(random.ttft.mean > default.ttft.mean);
    assert!(
        oracle.ttft.mean <= default.ttft.mean,
        "{oracle:?} {default:?}"
    );
    assert_eq!(
        (random.predicted_tokens, random.entries, random.evictions),
        (None, None, None),
        "chance expects nothing"
    );
}

#[test]
fn nothing_is_cached_where_nothing_is_shared() {
    let run = defaults(&generate(Generator::NoSharing, 200, 5.0, 7), &four_pods()).summary;
    assert_eq!((run.cached_tokens, run.predicted_tokens), (0, Some(0)));
}

#[test]
fn j5_routers_that_share_traffic_know_less_than_one() {
    let workload = generate(Generator::Repetition, 900, 8.0, 8);
    let with = |replicas: usize| {
        let setup = Setup {
            replicas,
            ..four_pods()
        };
        defaults(&workload, &setup)
            .summary
            .predicted_percent()
            .unwrap()
    };
    let (one, four) = (with(1), with(4));
    assert!(one > four + 5.0, "{one} {four}");
}

#[test]
fn e1_the_index_drops_entries_where_its_lists_are_short() {
    let workload = generate(Generator::SharedPrefix, 400, 8.0, 9);
    let small = config(&json!({
        "pluginConfig": [{"name": "prefix-cache", "args": {"maxHashCacheSize": 200}}],
        "plugins": {"Score": {"enabled": [{"name": "prefix-cache", "weight": 1}]}},
    }));
    let run = play(&workload, &four_pods(), Choice::Plugins(&small)).summary;
    assert!(run.evictions.unwrap() > 0);
    assert!(run.entries.unwrap() <= 4 * 200, "{:?}", run.entries);
    let run = defaults(&workload, &four_pods()).summary;
    assert_eq!(run.evictions, Some(0));
}

#[test]
fn a_log_of_the_router_replays_as_what_it_was() {
    let body = |text: &str| json!({"model": "m", "messages": [{"role": "user", "content": text}]});
    let long = "The same long beginning of every prompt. ".repeat(60);
    let lines: String = (0..20)
        .map(|n| {
            let body = body(&format!("{long} {n}"));
            let line = json!({"at": 1e9 + f64::from(n), "path": "/v1/chat/completions", "output_tokens": 5, "body": body});
            format!("{line}\n")
        })
        .collect();
    let workload = Workload::read("log", lines.as_bytes()).unwrap();
    assert_eq!((workload.requests.len(), workload.seconds()), (20, 19.0));
    let run = defaults(&workload, &four_pods()).summary;
    assert_eq!(
        (run.requests, run.failed, run.completion_tokens),
        (20, 0, 100)
    );
    assert!(run.cached_percent() > 50.0, "{run:?}");
    assert!(run.predicted_percent().unwrap() > 50.0, "{run:?}");

    let broken = json!({"at": 1.0, "path": "/v1/completions", "body": {"prompt": "no model"}});
    let workload = Workload::read("log", broken.to_string().as_bytes()).unwrap();
    let run = defaults(&workload, &four_pods()).summary;
    assert_eq!((run.requests, run.failed), (1, 1), "the router refuses it");
}

#[test]
fn times_can_be_changed() {
    let mut workload = generate(Generator::NoSharing, 1_000, 4.0, 1);
    let seconds = workload.seconds();
    let shaping = Shaping {
        speed: 2.0,
        ..Shaping::default()
    };
    workload.shape(&shaping, 0);
    assert!((workload.seconds() - seconds / 2.0).abs() < 1e-6);
    let shaping = Shaping {
        poisson: Some(10.0),
        limit: Some(500),
        ..Shaping::default()
    };
    workload.shape(&shaping, 0);
    assert_eq!(workload.requests.len(), 500);
    assert!(
        (40.0..60.0).contains(&workload.seconds()),
        "{}",
        workload.seconds()
    );
}

#[test]
fn the_page_needs_nothing_else_and_shows_names_as_text() {
    let workload = generate(Generator::Chat, 60, 6.0, 1);
    let config = SchedulerConfig::default();
    let name = "<script>alert(1)</script>";
    let outcome = replay(
        name,
        &workload,
        &four_pods(),
        Choice::Plugins(&config),
        &mut |_| {},
    );
    let html = page("a < b & c", &[outcome.unwrap()]);
    assert!(
        html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && html.contains("a &lt; b &amp; c")
    );
    for never in [
        "<script", "http://", "https://", "url(", "@import", "NaN", "inf",
    ] {
        assert!(!html.contains(never), "{never}");
    }
    assert_eq!(
        html.matches("<svg").count(),
        5,
        "three plots, one of them in two widths, and one of pods"
    );
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert!(
        html.contains("class=\"wide\" role=\"region\" tabindex=\"0\""),
        "a table that scrolls must be reached from the keyboard"
    );
    // Nothing happened: nothing is drawn, and nothing breaks.
    assert!(page("nothing", &[]).ends_with("</html>\n"));
}

#[test]
fn a_setup_that_makes_no_sense_is_named() {
    let workload = generate(Generator::NoSharing, 5, 4.0, 1);
    let with = |setup: Setup| {
        replay("", &workload, &setup, Choice::Oracle, &mut |_| {})
            .map(|outcome| outcome.summary.requests)
    };
    let usual = Setup::default;
    assert_eq!(
        with(Setup { pods: 0, ..usual() }),
        Err(SetupError::None("pod"))
    );
    assert_eq!(
        with(Setup {
            replicas: 0,
            ..usual()
        }),
        Err(SetupError::None("router"))
    );
    assert_eq!(
        with(Setup {
            scrape_interval: 0.0,
            ..usual()
        }),
        Err(SetupError::ScrapeInterval)
    );
    let joins = |at| Happening {
        at,
        what: What::Join,
    };
    let leaves = Happening {
        at: 5.0,
        what: What::Leave { pod: 8 },
    };
    assert_eq!(
        with(Setup {
            happenings: vec![leaves, joins(6.0)],
            ..usual()
        }),
        Err(SetupError::NoSuchPod(8)),
        "it joins later"
    );
    assert_eq!(
        with(Setup {
            happenings: vec![leaves, joins(4.0)],
            ..usual()
        }),
        Ok(5)
    );
}
