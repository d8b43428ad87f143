//! What manifests mean: defaults, names, and which files count.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]

mod common;

use common::{Manifests, route, server};
use control::resources::ModelServer;
use control::{Objects, Severity, files};
use routing::fleet::{Engine, KeySource, StringMatch, TargetRef};
use routing::pd::Connector;
use std::path::Path;
use std::time::Duration;

fn server_text(spec: &str) -> String {
    format!(
        "apiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelServer\nmetadata: {{name: s, namespace: n}}\nspec:\n  \
         inferenceEngine: SGLang\n  workloadSelector: {{matchLabels: {{app: x}}}}\n  workloadPort: {{port: 8000}}\n{spec}"
    )
}

fn one_server(spec: &str) -> ModelServer {
    let text = server_text(spec);
    let Objects { mut servers, .. } = Manifests::new(&text).load().unwrap();
    std::sync::Arc::into_inner(servers.remove(0)).unwrap()
}

#[test]
fn the_examples_have_no_problems() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/standalone");
    let objects = files::load(&examples).unwrap();
    assert_eq!(objects.warnings, []);
    assert_eq!((objects.servers.len(), objects.routes.len()), (3, 3));
    let demo = objects
        .servers
        .iter()
        .find(|s| s.meta.name.as_str() == "default/demo")
        .unwrap();
    let at: Vec<_> = demo.pods.iter().map(|p| p.endpoint.to_string()).collect();
    assert_eq!(
        at,
        [
            "127.0.0.1:8100",
            "127.0.0.1:8101",
            "127.0.0.1:8102",
            "127.0.0.1:8103"
        ]
    );
    assert_eq!(demo.policy.timeout, Some(Duration::from_secs(60)));
}

#[test]
fn j2_the_example_of_sessions_has_no_problems() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/session-sticky");
    let objects = files::load(&example).unwrap();
    assert_eq!(objects.warnings, []);
    let sticky = objects.servers[0].policy.session_sticky.as_ref().unwrap();
    assert_eq!(sticky.sources.len(), 3);
    let config = example.join("config/routerConfiguration.yaml");
    assert_eq!(control::RouterConfig::load(&config).unwrap().warnings, []);
}

#[test]
fn j3_the_example_of_pairs_has_two() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/prefill-decode");
    let objects = files::load(&examples).unwrap();
    assert_eq!(objects.warnings, []);
    let fleet = control::snapshot::build(
        &objects,
        &routing::fleet::Fleet::default(),
        &routing::fleet::PodIds::default(),
    );
    let pods = fleet.servers().next().unwrap().disaggregated().unwrap();
    assert_eq!(pods.paired_pods().len(), 2);
    assert_eq!(pods.connector, Connector::Nixl);
}

#[test]
fn an_endpoint_has_the_servers_port_unless_it_has_its_own() {
    let server = one_server(
        "  endpoints:\n  - {name: a, address: '::1'}\n  - {name: b, address: host_1.local, port: 9}\n",
    );
    let at: Vec<_> = server.pods.iter().map(|p| p.endpoint.to_string()).collect();
    assert_eq!(at, ["[::1]:8000", "host_1.local:9"]);
    assert_eq!(
        (server.engine, server.meta.name.as_str()),
        (Engine::Sglang, "n/s")
    );
}

#[test]
fn a_policy_is_unbounded_and_without_pauses_unless_set() {
    let policy =
        |text: &str| one_server(&format!("  endpoints: []\n  trafficPolicy: {text}\n")).policy;
    let none = policy("{}");
    assert_eq!(
        (none.timeout, none.attempts, none.retry_interval),
        (None, None, Duration::ZERO)
    );
    assert_eq!(policy("{timeout: 0s}").timeout, None);
    assert_eq!(
        policy("{timeout: 1m30s}").timeout,
        Some(Duration::from_secs(90))
    );
    let retry = policy("{retry: {attempts: 3}}");
    assert_eq!(
        (retry.attempts, retry.retry_interval),
        (Some(3), Duration::from_millis(100))
    );
    assert_eq!(
        policy("{retry: {retryInterval: 2s}}").retry_interval,
        Duration::from_secs(2)
    );
}

#[test]
fn fields_of_later_work_are_read_and_noted() {
    let server = one_server("  endpoints: []\n  kvConnector: {}\n");
    assert_eq!(server.kv_connector, Some(Connector::Http));
}

#[test]
fn j2_sessions_are_read_in_the_order_of_their_sources() {
    let text = "  endpoints: []\n  trafficPolicy:\n    sessionSticky:\n      sources: [{type: Header, name: X-Session}, \
                {type: Query, name: s}, {type: Cookie, name: SID}, {type: JWTClaim, name: sub}]\n";
    let server = one_server(text);
    let sticky = server.policy.session_sticky.unwrap();
    assert_eq!(sticky.affinity, Duration::from_secs(300));
    let sources = [
        KeySource::Header("x-session".parse().unwrap()),
        KeySource::Query("s".into()),
        KeySource::Cookie("SID".into()),
        KeySource::Claim("sub".into()),
    ];
    assert_eq!(sticky.sources, sources);
    assert_eq!(
        server.spec["trafficPolicy"]["sessionSticky"]["sources"][3]["type"],
        "JWTClaim"
    );
    let set = text.replace("sources:", "sessionAffinitySeconds: 7\n      sources:");
    let sticky = one_server(&set).policy.session_sticky.unwrap();
    assert_eq!(sticky.affinity, Duration::from_secs(7));
}

#[test]
fn j2_sources_that_cannot_be_asked_are_errors() {
    let said = |sources: &str| {
        let policy = format!("  trafficPolicy: {{sessionSticky: {{sources: {sources}}}}}\n");
        let text = server("a", &[]).replace("  endpoints", &(policy + "  endpoints"));
        Manifests::new(&text).said()
    };
    let at = "a.yaml:9: spec.trafficPolicy.sessionSticky.sources";
    assert_eq!(said("[{type: Query, name: 'a b'}]"), [""; 0]);
    for (sources, why) in [
        (
            "[]",
            ": Required value: sources must be non-empty when sessionSticky is set",
        ),
        (
            "[{type: Header, name: 'a b'}]",
            "[0].name: Invalid value: \"a b\": must be the name of an HTTP header",
        ),
        (
            "[{type: Cookie, name: ''}]",
            "[0].name: Invalid value: \"\": should be at least 1 chars long",
        ),
        ("[{type: Cookie}]", "[0].name: Required value"),
        (
            "[{type: cookie, name: a}]",
            "[0].type: Unsupported value: \"cookie\": supported values: \"Header\", \"Query\", \"Cookie\", \"JWTClaim\"",
        ),
    ] {
        assert_eq!(said(sources), [format!("{at}{why}")], "{sources}");
    }
    let many = vec!["{type: Cookie, name: a}"; 17].join(", ");
    assert_eq!(
        said(&format!("[{many}]")),
        [format!("{at}: Too many: 17: must have at most 16 items")]
    );
}

#[test]
fn a_weight_that_is_not_set_is_100() {
    let rules = "[{targetModels: [{modelServerName: a, weight: 5}, {modelServerName: b}]}]";
    let dir = Manifests::new(&(server("a", &[]) + &server("b", &[]) + &route("name: r", rules)));
    let objects = dir.load().unwrap();
    let targets = &objects.routes[0].route.rules[0].targets;
    assert_eq!(
        targets.iter().map(|t| t.weight).collect::<Vec<_>>(),
        [Some(5), Some(100)]
    );
    assert!(matches!(&targets[1].to, TargetRef::Server(name) if name.as_str() == "default/b"));
    assert_eq!(objects.warnings, []);
}

#[test]
fn a_match_keeps_exact_before_prefix_before_regex() {
    let rules = "[{modelMatch: {headers: {X-A: {exact: e, prefix: p, regex: r}, x-b: {prefix: p, regex: r}, x-c: {}}, \
                 uri: {regex: '^/v1'}, body: {model: m}}, targetModels: [{modelServerName: a}]}]";
    let dir = Manifests::new(&(server("a", &[]) + &route("name: r", rules)));
    let objects = dir.load().unwrap();
    let matches = objects.routes[0].route.rules[0].matches.as_ref().unwrap();
    assert!(
        matches!(&matches.headers[0], (name, StringMatch::Exact(e)) if name == "x-a" && e == "e")
    );
    assert!(matches!(&matches.headers[1], (_, StringMatch::Prefix(p)) if p == "p"));
    assert!(matches!(&matches.headers[2], (_, StringMatch::Any)));
    assert!(matches!(&matches.uri, Some(StringMatch::Regex(_))));
    assert_eq!(matches.body_model.as_deref(), Some("m"));
}

#[test]
fn a_route_to_a_server_that_does_not_exist_is_a_warning_that_strict_refuses() {
    let dir = Manifests::new(&route(
        "name: r",
        "[{targetModels: [{modelServerName: gone}]}]",
    ));
    let text = "a.yaml:7: spec.rules[0].targetModels[0].modelServerName: ModelServer default/gone does not exist; requests \
                for it get a 404";
    assert_eq!(dir.said(), [text]);
    let warnings = dir.load().unwrap().warnings;
    assert_eq!(warnings[0].severity, Severity::Warning);
    assert!(warnings[0].refuses(true) && !warnings[0].refuses(false));
}

#[test]
fn two_objects_of_one_name_are_an_error_that_names_both_places() {
    let dir = Manifests::new(&server("a", &[]));
    dir.write(
        "b.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}",
    );
    dir.write("c.yml", &(server("a", &[]) + &route("name: a", "[]")));
    let said = dir.said();
    assert_eq!(
        said,
        ["c.yml:4: metadata.name: ModelServer default/a is already defined at a.yaml:4"]
    );
}

#[test]
fn two_endpoints_of_one_name_are_an_error_that_names_both_lines() {
    let dir = Manifests::new(&server(
        "a",
        &["{name: x, address: h}", "\n    {name: x, address: bad:1}"],
    ));
    assert_eq!(
        dir.said()[0],
        "a.yaml:10: spec.endpoints[1].name: Duplicate value: \"x\": already used in line 9"
    );
}

#[test]
fn only_visible_manifests_directly_in_the_directory_are_read() {
    let dir = Manifests::new(&server("a", &[]));
    dir.write("b.yml", &server("b", &[]));
    dir.write(
        "c.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"c\"}}",
    );
    for ignored in [".hidden.yaml", "notes.txt", "yaml", "a.yaml.bak"] {
        dir.write(ignored, "not: a manifest");
    }
    std::fs::create_dir(dir.path().join("sub.yaml")).unwrap();
    let objects = dir.load().unwrap();
    assert_eq!((objects.servers.len(), objects.secrets.len()), (2, 1));
}

#[cfg(unix)]
#[test]
fn the_links_of_a_mounted_config_map_are_followed() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("..2026_01")).unwrap();
    std::fs::write(at("..2026_01/a.yaml"), server("a", &[])).unwrap();
    symlink("..2026_01", at("..data")).unwrap();
    symlink("..data/a.yaml", at("a.yaml")).unwrap();
    assert_eq!(files::load(dir.path()).unwrap().servers.len(), 1);

    symlink("..data/gone.yaml", at("b.yaml")).unwrap();
    let problems = files::load(dir.path()).unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .contains("b.yaml: cannot read the file: "),
        "{problems:?}"
    );
}

#[test]
fn a_list_as_kubectl_writes_it_is_read() {
    let text = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  data: {k: aGk=}\n- {apiVersion: v1, kind: Secret, metadata: {name: t}, extra: 1}\n";
    let dir = Manifests::new(text);
    assert_eq!(dir.said(), ["a.yaml:9: items[1].extra: unknown field"]);
    assert_eq!(
        dir.load().unwrap().secrets[0]
            .keys
            .iter()
            .collect::<Vec<_>>(),
        ["k"]
    );
}

#[test]
fn a_directory_that_does_not_exist_is_an_error() {
    let problems = files::load(Path::new("no/such/directory")).unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .starts_with("no/such/directory: cannot read the directory: "),
        "{problems:?}"
    );
}

#[test]
fn j3_an_empty_connector_is_http_and_none_is_the_engines() {
    let group = "  workloadSelector:\n    matchLabels: {app: x}\n    pdGroup: {groupKey: g, prefillLabels: {r: p}, decodeLabels: {r: d}}\n";
    let read = |engine: &str, connector: &str| {
        let text = format!(
            "apiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelServer\nmetadata: {{name: s}}\nspec:\n  \
             inferenceEngine: {engine}\n{group}  workloadPort: {{port: 1}}\n  endpoints: []\n{connector}"
        );
        let manifests = Manifests::new(&text);
        assert_eq!(manifests.said(), [""; 0]);
        let fleet = control::snapshot::build(
            &manifests.load().unwrap(),
            &routing::fleet::Fleet::default(),
            &routing::fleet::PodIds::default(),
        );
        let server = fleet.servers().next().unwrap();
        server.disaggregated().unwrap().connector
    };
    let named = |name: &str| format!("  kvConnector: {{type: {name}}}\n");
    assert_eq!(read("vLLM", ""), Connector::Http);
    assert_eq!(read("SGLang", ""), Connector::Sglang);
    assert_eq!(read("SGLang", "  kvConnector: {}\n"), Connector::Http);
    assert_eq!(read("vLLM", &named("nixl")), Connector::Nixl);
    assert_eq!(read("vLLM", &named("lmcache")), Connector::LmCache);
    assert_eq!(read("SGLang", &named("mooncake")), Connector::Mooncake);
}

#[test]
fn a_connector_without_pairs_is_noted() {
    let server = one_server("  endpoints: []\n  kvConnector: {type: nixl}\n");
    assert_eq!(server.kv_connector, Some(Connector::Nixl));
    let text = server_text("  endpoints: []\n  kvConnector: {type: nixl}\n");
    assert_eq!(
        Manifests::new(&text).said(),
        ["a.yaml:9: spec.kvConnector: has no effect without workloadSelector.pdGroup"]
    );
}
