//! Which server a request is routed to.

use http::{HeaderMap, HeaderName, HeaderValue};
use routing::fleet::{
    Engine, Fleet, ModelRoute, ModelServer, ObjectName, Rule, RuleMatch, StringMatch, Target,
    TargetRef, TrafficPolicy,
};
use routing::route::{RouteError, route};
use std::sync::Arc;

const PATH: &str = "/v1/chat/completions";

fn name(name: &str) -> ObjectName {
    ObjectName::new("ns", name)
}

fn server(id: &str, model: Option<&str>) -> Arc<ModelServer> {
    let model = model.map(Into::into);
    let policy = TrafficPolicy::default();
    Arc::new(ModelServer::new(
        name(id),
        model,
        Engine::Vllm,
        policy,
        serde_json::Value::Null,
        vec![],
    ))
}

fn to(id: &str, weight: Option<u32>) -> Target {
    Target {
        to: TargetRef::Server(name(id)),
        weight,
    }
}

fn rule(matches: Option<RuleMatch>, targets: Vec<Target>) -> Rule {
    Rule {
        name: None,
        matches,
        targets,
    }
}

fn model_route(id: &str, model: Option<&str>, adapters: &[&str], rules: Vec<Rule>) -> ModelRoute {
    ModelRoute {
        name: name(id),
        model_name: model.map(Into::into),
        lora_adapters: adapters.iter().map(|&a| a.into()).collect(),
        has_parent_refs: false,
        rules,
        spec: serde_json::Value::Null,
    }
}

/// A fleet with servers `a`, `b`, `c` (without a model of their own) and these routes.
fn fleet(routes: Vec<ModelRoute>) -> Fleet {
    let servers = ["a", "b", "c"].map(|id| server(id, None)).to_vec();
    Fleet::new(servers, routes.into_iter().map(Arc::new).collect())
}

fn server_of(
    fleet: &Fleet,
    model: &str,
    path: &str,
    headers: &HeaderMap,
    draw: u64,
) -> Result<String, RouteError> {
    route(fleet, model, path, headers, draw).map(|routed| routed.server.name.name().to_owned())
}

fn plain(fleet: &Fleet, model: &str) -> Result<String, RouteError> {
    server_of(fleet, model, PATH, &HeaderMap::new(), 0)
}

fn always(id: &str) -> Vec<Rule> {
    vec![rule(None, vec![to(id, None)])]
}

fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in list {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    map
}

#[test]
fn an_unknown_model_has_no_route_and_names_are_case_sensitive() {
    let fleet = fleet(vec![model_route("r", Some("Case"), &[], always("a"))]);
    assert_eq!(plain(&fleet, "Case"), Ok("a".into()));
    for model in ["case", "Cas", "Case ", ""] {
        let error = plain(&fleet, model).expect_err(model);
        assert_eq!(
            (&error, error.to_string().as_str()),
            (&RouteError::NotFound, "route not found")
        );
    }
}

#[test]
fn a_base_model_goes_before_an_adapter_of_the_same_name() {
    let fleet = fleet(vec![
        model_route("lora", Some("base"), &["both", "adapter"], always("a")),
        model_route("base", Some("both"), &[], always("b")),
    ]);
    assert_eq!(plain(&fleet, "both"), Ok("b".into()));
    assert_eq!(plain(&fleet, "adapter"), Ok("a".into()));
}

#[test]
fn the_model_is_renamed_except_for_adapters_and_equal_names() {
    let servers = vec![server("a", Some("served"))];
    let routes = vec![
        model_route("r", Some("alias"), &["adapter"], always("a")),
        model_route("s", Some("served"), &[], always("a")),
    ];
    let fleet = Fleet::new(servers, routes.into_iter().map(Arc::new).collect());
    let none = HeaderMap::new();
    for (model, upstream) in [
        ("alias", Some("served")),
        ("adapter", None),
        ("served", None),
    ] {
        let routed = route(&fleet, model, PATH, &none, 0).expect(model);
        assert_eq!(routed.upstream_model, upstream, "{model}");
        assert!(
            Arc::ptr_eq(routed.model, fleet.known_model(model).expect(model)),
            "the fleet's own copy"
        );
        assert_eq!(&**routed.model, model);
    }
    assert_eq!(
        route(&fleet, "alias", PATH, &none, 0)
            .expect("alias")
            .route
            .name,
        name("r")
    );
}

#[test]
fn the_earlier_route_is_asked_first_and_the_next_when_no_rule_matches() {
    let never = RuleMatch {
        body_model: Some("other".into()),
        ..RuleMatch::default()
    };
    let fleet = fleet(vec![
        model_route(
            "1",
            Some("m"),
            &[],
            vec![rule(Some(never), vec![to("a", None)])],
        ),
        model_route("2", Some("m"), &[], vec![]),
        model_route("3", Some("m"), &[], always("b")),
        model_route("4", Some("m"), &[], always("c")),
    ]);
    assert_eq!(plain(&fleet, "m"), Ok("b".into()));
}

#[test]
fn a_route_of_a_gateway_is_skipped() {
    let tied = ModelRoute {
        has_parent_refs: true,
        ..model_route("1", Some("m"), &[], always("a"))
    };
    let alone = ModelRoute {
        has_parent_refs: true,
        ..model_route("3", Some("x"), &[], always("a"))
    };
    let fleet = fleet(vec![
        tied,
        model_route("2", Some("m"), &[], always("b")),
        alone,
    ]);
    assert_eq!(plain(&fleet, "m"), Ok("b".into()));
    assert_eq!(plain(&fleet, "x"), Err(RouteError::NotFound));
}

#[test]
fn the_first_rule_that_matches_decides() {
    let tier = |value: &str| {
        let wanted = StringMatch::Exact(value.into());
        Some(RuleMatch {
            headers: vec![(HeaderName::from_static("x-tier"), wanted)],
            ..RuleMatch::default()
        })
    };
    let rules = vec![
        rule(tier("gold"), vec![to("a", None)]),
        rule(tier("gold"), vec![to("b", None)]),
        rule(Some(RuleMatch::default()), vec![to("c", None)]),
    ];
    let fleet = fleet(vec![model_route("r", Some("m"), &[], rules)]);
    assert_eq!(
        server_of(&fleet, "m", PATH, &headers(&[("x-tier", "gold")]), 0),
        Ok("a".into())
    );
    assert_eq!(
        server_of(&fleet, "m", PATH, &headers(&[("x-tier", "Gold")]), 0),
        Ok("c".into())
    );
    let twice = headers(&[("x-tier", "lead"), ("x-tier", "gold")]);
    assert_eq!(
        server_of(&fleet, "m", PATH, &twice, 0),
        Ok("c".into()),
        "the first value counts"
    );
}

#[test]
fn all_conditions_of_a_rule_must_hold() {
    let matches = RuleMatch {
        headers: vec![
            (
                HeaderName::from_static("x-a"),
                StringMatch::Exact("1".into()),
            ),
            (
                HeaderName::from_static("x-b"),
                StringMatch::Prefix("2".into()),
            ),
        ],
        uri: Some(StringMatch::Prefix("/v1/chat".into())),
        body_model: Some("m".into()),
    };
    let fleet = fleet(vec![model_route(
        "r",
        Some("m"),
        &["n"],
        vec![rule(Some(matches), vec![to("a", None)])],
    )]);
    let good = headers(&[("x-a", "1"), ("x-b", "23")]);
    assert_eq!(server_of(&fleet, "m", PATH, &good, 0), Ok("a".into()));
    for (model, path, headers) in [
        ("n", PATH, good.clone()),
        ("m", "/v1/completions", good),
        ("m", PATH, headers(&[("x-a", "1")])),
        ("m", PATH, headers(&[("x-b", "23")])),
    ] {
        assert_eq!(
            server_of(&fleet, model, path, &headers, 0),
            Err(RouteError::NotFound),
            "{model} {path}"
        );
    }
}

#[test]
fn a_missing_header_compares_as_the_empty_string() {
    for (wanted, want) in [
        (StringMatch::Exact(String::new()), true),
        (StringMatch::Exact("x".into()), false),
        (StringMatch::Prefix(String::new()), true),
        (StringMatch::from_parts(None, None, Some("^$")), true),
        (StringMatch::from_parts(None, None, Some(".")), false),
        (StringMatch::Any, true),
    ] {
        let label = format!("{wanted:?}");
        let matches = RuleMatch {
            headers: vec![(HeaderName::from_static("x-a"), wanted)],
            ..RuleMatch::default()
        };
        let fleet = fleet(vec![model_route(
            "r",
            Some("m"),
            &[],
            vec![rule(Some(matches), vec![to("a", None)])],
        )]);
        assert_eq!(plain(&fleet, "m").is_ok(), want, "{label}");
    }
}

#[test]
fn exact_goes_before_prefix_before_regex() {
    let cases = [
        (Some("a"), Some("b"), Some("c"), "a", "b"),
        (None, Some("b"), Some("c"), "bc", "c"),
        (None, None, Some("c$"), "abc", "ca"),
    ];
    for (exact, prefix, regex, yes, no) in cases {
        let made = StringMatch::from_parts(exact, prefix, regex);
        assert!(made.matches(yes) && !made.matches(no), "{made:?}");
    }
    let any = StringMatch::from_parts(None, None, None);
    assert!(any.matches("") && any.matches("x"));
    let invalid = StringMatch::from_parts(None, None, Some("("));
    assert!(matches!(&invalid, StringMatch::Invalid(pattern) if pattern == "("));
    assert!(!invalid.matches("(") && !invalid.matches(""));
}

#[test]
fn weights_are_shares_exact_to_one_draw_in_the_grid() {
    for weights in [vec![1, 2, 5], vec![0, 3, 0], vec![100, 0, 1], vec![7, 7, 7]] {
        let total: u32 = weights.iter().sum();
        let targets = ["a", "b", "c"]
            .iter()
            .zip(&weights)
            .map(|(id, &weight)| to(id, Some(weight)))
            .collect();
        let fleet = fleet(vec![model_route(
            "r",
            Some("m"),
            &[],
            vec![rule(None, targets)],
        )]);
        // An even grid of draws meets each target exactly in proportion.
        let steps = u64::from(total) * 16;
        let mut counts = [0; 3];
        for step in 0..steps {
            let draw = ((u128::from(step) << 64) / u128::from(steps)) as u64 + 1;
            let id = server_of(&fleet, "m", PATH, &HeaderMap::new(), draw).expect("a server");
            counts[usize::from(id.as_bytes()[0] - b'a')] += 1;
        }
        assert_eq!(
            counts.to_vec(),
            weights.iter().map(|w| w * 16).collect::<Vec<_>>()
        );
        let last = weights.iter().rposition(|&w| w > 0).expect("a weight");
        let id = server_of(&fleet, "m", PATH, &HeaderMap::new(), u64::MAX).expect("a server");
        assert_eq!(id, ["a", "b", "c"][last], "the largest draw");
    }
}

#[test]
fn without_weights_all_targets_have_equal_shares() {
    let targets = vec![to("a", None), to("b", None)];
    let fleet = fleet(vec![model_route(
        "r",
        Some("m"),
        &[],
        vec![rule(None, targets)],
    )]);
    let at = |draw| server_of(&fleet, "m", PATH, &HeaderMap::new(), draw).expect("a server");
    assert_eq!(
        [0, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX].map(at),
        ["a", "a", "b", "b"]
    );
}

#[test]
fn weights_that_make_no_sense_lead_to_the_next_route() {
    for targets in [
        vec![to("a", Some(1)), to("b", None)],
        vec![to("a", Some(0)), to("b", Some(0))],
        vec![],
    ] {
        let broken = || {
            vec![rule(
                None,
                targets
                    .iter()
                    .map(|t| Target {
                        to: t.to.clone(),
                        weight: t.weight,
                    })
                    .collect(),
            )]
        };
        let next = model_route("2", Some("m"), &[], always("c"));
        let both = fleet(vec![model_route("1", Some("m"), &[], broken()), next]);
        assert_eq!(plain(&both, "m"), Ok("c".into()));
        let alone = fleet(vec![model_route("1", Some("m"), &[], broken())]);
        assert_eq!(plain(&alone, "m"), Err(RouteError::NotFound));
    }
}

#[test]
fn a_target_that_is_missing_or_external_is_named() {
    let external = Target {
        to: TargetRef::External(name("cloud")),
        weight: None,
    };
    let fleet = fleet(vec![
        model_route("1", Some("m"), &[], always("gone")),
        model_route("2", Some("m"), &[], always("a")),
        model_route("3", Some("x"), &[], vec![rule(None, vec![external])]),
    ]);
    let missing = plain(&fleet, "m").expect_err("missing");
    assert_eq!(missing, RouteError::ServerMissing(name("gone")));
    assert_eq!(missing.to_string(), "can't find model server: ns/gone");
    let external = plain(&fleet, "x").expect_err("external");
    assert_eq!(external, RouteError::ExternalProvider(name("cloud")));
    assert_eq!(
        external.to_string(),
        "can't find external model provider: ns/cloud"
    );
}
