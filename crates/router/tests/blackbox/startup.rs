//! What stops a start, and what only draws a warning.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Gauges, Pod, Router, scheduler};

/// Starts a router that must not come up, and returns the last line of its log without the prefix.
async fn refused(setup: e2e::Setup) -> String {
    let mut router = setup.launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    let lines = router.log.lines();
    let last = lines.last().expect("a reason");
    assert!(last.starts_with('E'), "{last}");
    last.split_once("] ").unwrap().1.to_owned()
}

/// Scores with this text for `enabled`.
fn scores(enabled: &str) -> String {
    format!("scheduler:\n  plugins:\n    Score:\n      enabled:\n{enabled}")
}

async fn blocks(router: &Router, bytes: usize) -> u64 {
    let plan = router
        .explain(COMPLETIONS, completion(&text(1, bytes)))
        .await;
    plan["prompt"]["blocks"].as_u64().unwrap()
}

#[tokio::test]
async fn f1_a_named_configuration_must_be_there() {
    let said = refused(setup().flags(&["--router-config", "elsewhere.yaml"])).await;
    let wanted = "failed to parse router config: failed to read config file elsewhere.yaml: ";
    assert!(said.starts_with(wanted), "{said}");
}

#[tokio::test]
async fn f1_a_configuration_at_another_path_is_read() {
    let pod = Pod::start().await;
    let setup = setup()
        .pods(&[&pod])
        .manifest("../other.yaml", &scheduler(&[("gpu-usage", 1)], "{}"));
    let router = setup
        .flags(&["--router-config", "other.yaml"])
        .start()
        .await;
    assert_eq!(router.scores("gpu-usage", "x").await, [Some(100)]);
    assert_eq!(router.scores("prefix-cache", "x").await, [None]);
}

#[tokio::test]
async fn f1_a_configuration_that_is_no_yaml_stops_the_start() {
    let said = refused(setup().config("scheduler: [")).await;
    let wanted = "failed to parse router config: failed to Unmarshal routerConfiguration: ";
    assert!(
        said.starts_with(wanted) && said.contains("routerConfiguration.yaml:1"),
        "{said}"
    );
}

#[tokio::test]
async fn f2_the_defaults() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (bytes, count) in [(2000, 32), (8192, 128), (20_000, 128), (1, 1), (65, 2)] {
        assert_eq!(blocks(&router, bytes).await, count, "{bytes} bytes");
    }
}

#[tokio::test]
async fn f3_zero_and_negative_arguments_are_defaults() {
    let pod = Pod::start().await;
    let args = "{blockSizeToHash: 0, maxBlocksToMatch: -1, maxHashCacheSize: 0, topKMatches: -5}";
    let router = setup()
        .pods(&[&pod])
        .config(&scheduler(&[("prefix-cache", 1)], args))
        .start()
        .await;
    assert_eq!(blocks(&router, 2000).await, 32);
    assert_eq!(blocks(&router, 20_000).await, 128);
}

#[tokio::test]
async fn f4_a_misspelled_argument_is_ignored_with_one_warning() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{blockSizeToHsh: 128}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    assert_eq!(blocks(&router, 2000).await, 32);
    let warnings = router.log.lines();
    let warnings: Vec<_> = warnings
        .iter()
        .filter(|l| l.contains("blockSizeToHsh"))
        .collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with('W'), "{warnings:?}");
}

#[tokio::test]
async fn f5_args_that_cannot_be_parsed_are_all_four_defaults() {
    let pod = Pod::start().await;
    for args in [
        "{blockSizeToHash: '16', maxBlocksToMatch: 1}",
        "[1, 2]",
        "{maxBlocksToMatch: 1, topKMatches: 1.5}",
    ] {
        let config = scheduler(&[("prefix-cache", 1)], args);
        let router = setup().pods(&[&pod]).config(&config).start().await;
        router
            .log
            .has("Failed to unmarshal PrefixCacheArgs, using default values")
            .await;
        assert_eq!(blocks(&router, 2000).await, 32, "{args}");
    }
}

#[tokio::test]
async fn f6_a_weight_that_is_not_positive_stops_the_start() {
    for (weight, got) in [
        (", weight: 0", 0),
        (", weight: -3", -3),
        ("", 0),
        (", weight: null", 0),
    ] {
        let config = scores(&format!(
            "      - {{name: gpu-usage, weight: 1}}\n      - {{name: prefix-cache{weight}}}\n"
        ));
        let wanted = format!(
            "failed to Load Scheduler: failed to Unmarshal Plugins: score plugin \"prefix-cache\" must set a weight \
             greater than 0, got {got}"
        );
        assert_eq!(refused(setup().config(&config)).await, wanted, "{weight:?}");
    }
}

#[tokio::test]
async fn f7_disabled_lists_have_no_effect() {
    let full = Pod::start().await;
    let idle = Pod::start().await;
    full.preset(Some(Gauges {
        waiting: 99,
        ..Gauges::default()
    }));
    let config = "scheduler:\n  plugins:\n    Filter:\n      enabled: [least-request]\n      disabled: [least-request]\n    \
                  Score:\n      enabled: [{name: prefix-cache, weight: 1}]\n      disabled: [{name: prefix-cache}]\n";
    let router = setup().pods(&[&full, &idle]).config(config).start().await;
    let plan = router.explain(COMPLETIONS, completion("x")).await;
    assert_eq!(plan["candidates"][0]["filteredBy"], "least-request");
    assert_eq!(plan["candidates"][1]["scores"]["prefix-cache"], 0);
}

#[tokio::test]
async fn an_unknown_plugin_is_skipped_and_named() {
    let pod = Pod::start().await;
    let config =
        scores("      - {name: no-such, weight: 1}\n      - {name: gpu-usage, weight: 1}\n");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    router.log.has("Failed to get plugin no-such.").await;
    assert_eq!(router.scores("gpu-usage", "x").await, [Some(100)]);
}

#[tokio::test]
async fn random_beside_others_is_removed() {
    let pod = Pod::start().await;
    let config = scheduler(&[("random", 1), ("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    router
        .log
        .has("Random plugin is configured along with other score plugins.")
        .await;
    assert_eq!(router.scores("random", "x").await, [None]);
}

#[tokio::test]
async fn a_weight_factor_out_of_range_stops_the_start() {
    let config = "scheduler:\n  pluginConfig:\n  - {name: least-latency, args: {TTFTTPOTWeightFactor: 1.5}}\n";
    assert_eq!(
        refused(setup().config(config)).await,
        "failed to Load Scheduler: invalid least-latency plugin configuration: TTFTTPOTWeightFactor must be a finite \
         value between 0 and 1, got 1.5"
    );
}

#[tokio::test]
async fn invalid_manifests_stop_the_start_with_every_problem_named() {
    let text = e2e::model_server("m", &[], "")
        .replace("vLLM", "Llama")
        .replace("8000", "0");
    let mut router = setup().manifest("server.yaml", &text).launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    for problem in [
        "server.yaml:6: spec.inferenceEngine: ",
        "server.yaml:9: spec.workloadPort.port: ",
        ": 2 problems",
    ] {
        router.log.has(problem).await;
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_stops_the_start() {
    let said = refused(setup().flags(&["--config-dir", "nowhere"])).await;
    assert_eq!(said, "the manifests in nowhere are not valid: 1 problems");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_its_flag() {
    let holder = std::net::TcpListener::bind(("0.0.0.0", 0)).unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    for flag in ["--port", "--metrics-port", "--debug-port"] {
        let said = refused(setup().flags(&[flag, &port])).await;
        assert_eq!(
            said,
            format!("port {port} is already in use; choose another one with {flag}")
        );
    }
}
