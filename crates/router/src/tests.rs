//! What ships around the program agrees with it: chart, image, dashboard and cluster example. The chart is seen as Helm
//! rendered it into `charts/tests/golden`; `charts/tests/run.py` holds these files equal to the chart.

use crate::flags::{Cli, DEFAULT_ROUTER_CONFIG, Serve};
use clap::Parser;
use control::{RouterConfig, files};
use routing::schedule::SchedulerConfig;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const CASES: [&str; 5] = [
    "defaults",
    "webhook-off",
    "cert-manager",
    "tls",
    "autoscaled",
];

fn path(below_root: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(below_root)
}

fn text(below_root: &str) -> String {
    fs::read_to_string(path(below_root)).unwrap_or_else(|e| panic!("{below_root}: {e}"))
}

fn documents(below_root: &str) -> Vec<Value> {
    let found: Vec<Value> = serde_saphyr::from_multiple(&text(below_root))
        .unwrap_or_else(|e| panic!("{below_root}: {e}"));
    found.into_iter().filter(|d| !d.is_null()).collect()
}

/// The objects of one rendering.
struct Rendered(Vec<Value>);

impl Rendered {
    fn of(case: &str) -> Self {
        Self(documents(&format!("charts/tests/golden/{case}.yaml")))
    }

    fn one(&self, kind: &str, name: &str) -> &Value {
        let wanted = |o: &&Value| o["kind"] == kind && o["metadata"]["name"] == name;
        let found = self.0.iter().find(wanted);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    fn container(&self) -> &Value {
        let deployment = self.one("Deployment", "kthena-router");
        &deployment["spec"]["template"]["spec"]["containers"][0]
    }

    fn flags(&self) -> Serve {
        let args = array(&self.container()["args"]).iter().map(string);
        Cli::try_parse_from(std::iter::once("kthena-router").chain(args))
            .unwrap_or_else(|e| panic!("{e}"))
            .serve
    }

    /// The scheduler that the ConfigMap describes.
    fn scheduler(&self) -> SchedulerConfig {
        let map = self.one("ConfigMap", "kthena-router-config");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("routerConfiguration.yaml");
        fs::write(&file, string(&map["data"]["routerConfiguration"])).unwrap();
        let config = RouterConfig::load(&file).unwrap();
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        let (scheduler, warnings) = SchedulerConfig::from_value(&config.scheduler).unwrap();
        assert_eq!(warnings, []);
        scheduler
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn plugins(config: &SchedulerConfig) -> (Vec<&str>, Vec<(&str, u64)>) {
    let scores = config
        .scores()
        .iter()
        .map(|s| (s.plugin.name, s.weight.get()));
    let mut scores: Vec<_> = scores.collect();
    scores.sort_unstable();
    (config.filters().map(|p| p.name).collect(), scores)
}

#[test]
fn f8_the_config_map_of_the_chart_says_what_is_built_in() {
    let (chart, built_in) = (
        Rendered::of("defaults").scheduler(),
        SchedulerConfig::default(),
    );
    assert_eq!(chart.args(), built_in.args());
    assert_eq!(plugins(&chart), plugins(&built_in));
    // Explicitly: the text names the four arguments itself.
    let map = Rendered::of("defaults");
    let written =
        string(&map.one("ConfigMap", "kthena-router-config")["data"]["routerConfiguration"])
            .to_owned();
    for argument in [
        "blockSizeToHash: 64",
        "maxBlocksToMatch: 128",
        "maxHashCacheSize: 50000",
        "topKMatches: 5",
    ] {
        assert!(written.contains(argument), "{argument}:\n{written}");
    }
    // Values of an installation get through, large numbers as integers.
    let other = Rendered::of("autoscaled").scheduler();
    assert_eq!(
        plugins(&other),
        (vec![], vec![("least-request", 1), ("prefix-cache", 2)])
    );
    assert_eq!(other.args().prefix_cache.capacity, 1_000_000);
}

#[test]
fn f1_the_configuration_is_mounted_where_it_is_looked_for() {
    let rendered = Rendered::of("defaults");
    let mount = &rendered.container()["volumeMounts"][0];
    assert_eq!(mount["mountPath"], DEFAULT_ROUTER_CONFIG);
    assert_eq!(mount["subPath"], "routerConfiguration");
    assert_eq!(
        rendered.flags().router_config,
        PathBuf::from(DEFAULT_ROUTER_CONFIG)
    );
}

#[test]
fn every_argument_and_variable_of_the_chart_is_known() {
    let read_here = include_str!("env.rs");
    for case in CASES {
        let rendered = Rendered::of(case);
        rendered.flags().absent.check().unwrap();
        for variable in array(&rendered.container()["env"]) {
            let name = string(&variable["name"]);
            assert!(
                name == "POD_NAMESPACE" || read_here.contains(&format!("\"{name}\"")),
                "{case}: nobody reads {name}"
            );
        }
    }
}

#[test]
fn j6_names_and_ports_are_those_that_the_verify_steps_use() {
    let rendered = Rendered::of("defaults");
    let defaults = Cli::parse_from(["kthena-router"]).serve;
    let flags = rendered.flags();
    assert_eq!(
        (flags.port, flags.metrics_port, flags.debug_port),
        (defaults.port, defaults.metrics_port, defaults.debug_port)
    );
    let port = |service: &str, number: usize| {
        let service = rendered.one("Service", service);
        let port = &service["spec"]["ports"][number];
        (
            port["port"].as_u64().unwrap(),
            string(&port["targetPort"]).to_owned(),
        )
    };
    assert_eq!(port("kthena-router", 0), (80, "http".into()));
    assert_eq!(port("kthena-router-metrics", 0), (9090, "metrics".into()));
    assert_eq!(port("kthena-router-webhook", 0), (443, "webhook".into()));
    let container: Vec<_> = array(&rendered.container()["ports"])
        .iter()
        .map(|p| {
            (
                string(&p["name"]).to_owned(),
                p["containerPort"].as_u64().unwrap(),
            )
        })
        .collect();
    let named = |name: &str| container.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(named("http"), u64::from(defaults.port));
    assert_eq!(named("metrics"), u64::from(defaults.metrics_port));
    assert_eq!(named("debug"), u64::from(defaults.debug_port));
}

#[test]
fn chart_and_program_have_one_version() {
    let chart = &documents("charts/kthena-router/Chart.yaml")[0];
    for field in ["version", "appVersion"] {
        assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{field}");
    }
    let tag = format!("kthena-router:{}", env!("CARGO_PKG_VERSION"));
    let engines = &documents("examples/kubernetes/engines/sim-engine.yaml")[0];
    let engine = &engines["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(engine["image"], tag.as_str());
    assert!(text("examples/kubernetes/README.md").contains(&tag));
}

#[test]
fn the_image_has_the_toolchain_of_the_project() {
    let toolchain = text("rust-toolchain.toml");
    let (_, rest) = toolchain.split_once("channel = \"").unwrap();
    let version = rest.split('"').next().unwrap();
    let from = format!("FROM rust:{version}-");
    assert!(text("Dockerfile").contains(&from), "{from}");
}

#[test]
fn the_webhook_is_asked_about_our_kinds() {
    let rendered = Rendered::of("defaults");
    let configuration = rendered.one(
        "ValidatingWebhookConfiguration",
        "kthena-router-validating-webhook",
    );
    let asked: Vec<_> = array(&configuration["webhooks"])
        .iter()
        .map(|w| {
            let service = &w["clientConfig"]["service"];
            (
                string(&w["name"]),
                string(&service["path"]),
                string(&w["rules"][0]["resources"][0]),
            )
        })
        .collect();
    assert_eq!(
        asked,
        [
            (
                "validate-modelroute.volcano.sh",
                "/validate/modelroute",
                "modelroutes"
            ),
            (
                "validate-modelserver.volcano.sh",
                "/validate/modelserver",
                "modelservers"
            ),
            (
                "validate-externalmodelprovider.volcano.sh",
                "/validate/externalmodelprovider",
                "externalmodelproviders"
            ),
        ]
    );
}

#[test]
fn the_cluster_example_is_valid() {
    let models = files::load(&path("examples/kubernetes/models")).unwrap();
    assert_eq!((models.servers.len(), models.routes.len()), (1, 1));
    // In a cluster pods are found by their labels: that endpoints are missing is said, and no fault.
    assert!(
        !models.warnings.iter().any(|problem| problem.refuses(true)),
        "{:?}",
        models.warnings
    );
    let engines = &documents("examples/kubernetes/engines/sim-engine.yaml")[0];
    let template = &engines["spec"]["template"];
    let server = &documents("examples/kubernetes/models/demo.yaml")[0];
    let wanted = &server["spec"]["workloadSelector"]["matchLabels"];
    assert_eq!(template["metadata"]["labels"], *wanted);
    let container = &template["spec"]["containers"][0];
    assert_eq!(
        container["ports"][0]["containerPort"],
        server["spec"]["workloadPort"]["port"]
    );
    let args = array(&container["args"]).iter().map(string);
    Cli::try_parse_from(std::iter::once("kthena-router").chain(args)).unwrap();
    let config = Rendered(documents(
        "examples/kubernetes/config/kthena-router-config.yaml",
    ));
    assert_eq!(config.scheduler().args().prefix_cache.max_blocks, 512);
}

#[test]
fn g4_the_dashboard_has_the_prefix_cache_row_of_three_panels() {
    let file = "examples/observability/kthena-router-score-plugins-dashboard.json";
    let dashboard: Value = serde_json::from_str(&text(file)).unwrap();
    let panels = array(&dashboard["panels"]);
    let row = |title: &str| {
        let start = panels
            .iter()
            .position(|p| p["title"] == title && p["type"] == "row");
        let below = &panels[start.unwrap_or_else(|| panic!("no row {title}")) + 1..];
        let titles = below
            .iter()
            .take_while(|p| p["type"] != "row")
            .map(|p| string(&p["title"]));
        titles.collect::<Vec<_>>()
    };
    assert_eq!(
        row("prefix-cache"),
        [
            "Prefix cache hit rate",
            "Prefix match ratio p50/p90/p99",
            "Prefix cache entries & eviction rate"
        ]
    );
    assert_eq!(
        row("other score plugins"),
        [
            "Plugin duration, mean",
            "Plugin duration, p99",
            "Scheduling failures",
            "In-flight requests by pod",
            "Waiting requests by pod"
        ]
    );
    let variables: Vec<_> = array(&dashboard["templating"]["list"])
        .iter()
        .map(|v| string(&v["name"]))
        .collect();
    assert_eq!(variables, ["datasource", "model"]);
    let mut ids: Vec<_> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
    ids.dedup();
    assert_eq!(ids.len(), panels.len(), "every panel has an id of its own");
}
