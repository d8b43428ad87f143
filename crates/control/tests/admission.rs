//! The webhook's answers, word for word.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use control::admission::{Verdict, answer, review};
use control::resources::{API_VERSION, Kind};
use serde_json::{Value, json};

fn object(kind: Kind, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind.as_str(), "metadata": {"name": "x", "namespace": "n"}, "spec": spec})
}

fn refusal(kind: Kind, spec: &Value) -> String {
    review(kind, object(kind, spec))
        .refusal
        .expect("it is refused")
}

fn route(rest: &Value) -> Value {
    let mut spec =
        json!({"modelName": "m", "rules": [{"targetModels": [{"modelServerName": "a"}]}]});
    for (name, value) in rest.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn server(rest: &Value) -> Value {
    let mut spec = json!({
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": "x"}},
        "workloadPort": {"port": 8000},
    });
    for (name, value) in rest.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn provider(rest: &Value) -> Value {
    let mut spec = json!({"baseURL": "https://example.com"});
    for (name, value) in rest.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn what_is_valid_is_allowed() {
    for (kind, spec) in [
        (Kind::ModelRoute, route(&json!({}))),
        (Kind::ModelServer, server(&json!({}))),
        (Kind::ExternalModelProvider, provider(&json!({}))),
        (
            Kind::ExternalModelProvider,
            provider(&json!({"auth": {"secretRef": {"name": "s", "key": "k"}}})),
        ),
    ] {
        assert_eq!(review(kind, object(kind, &spec)).refusal, None, "{spec}");
    }
}

#[test]
fn one_refusal_of_each_rule_for_routes() {
    let target = |target: Value| route(&json!({"rules": [{"targetModels": [target]}]}));
    let uri = |regex: &str| {
        route(
            &json!({"rules": [{"modelMatch": {"uri": {"regex": regex}}, "targetModels": [{"modelServerName": "a"}]}]}),
        )
    };
    for (spec, said) in [
        (
            route(&json!({"modelName": ""})),
            "spec: Required value: either modelName or loraAdapters must be specified",
        ),
        (
            route(&json!({"loraAdapters": ["a", ""]})),
            "spec.loraAdapters[1]: Invalid value: \"\": lora adapter name cannot be an empty string",
        ),
        (
            route(&json!({"rules": [null]})),
            "spec.rules[0]: Invalid value: null: rule must not be nil",
        ),
        (
            route(&json!({"rules": [{"targetModels": []}]})),
            "spec.rules[0].targetModels: Required value: each rule must have at least one target model",
        ),
        (
            target(Value::Null),
            "spec.rules[0].targetModels[0]: Invalid value: null: target model must not be nil",
        ),
        (
            target(json!({"modelServerName": "a", "externalModelProviderName": "b"})),
            "spec.rules[0].targetModels[0]: Invalid value: \"a/b\": exactly one of modelServerName or \
             externalModelProviderName must be set",
        ),
        (
            target(json!({"weight": 1})),
            "spec.rules[0].targetModels[0]: Invalid value: \"/\": exactly one of modelServerName or \
             externalModelProviderName must be set",
        ),
        (
            route(
                &json!({"loraAdapters": ["l"], "rules": [{"targetModels": [{"externalModelProviderName": "e"}]}]}),
            ),
            "spec.rules[0].targetModels[0].externalModelProviderName: Invalid value: \"e\": lora routes must target \
             modelServerName",
        ),
        (
            target(json!({"modelServerName": "a", "weight": 0})),
            "spec.rules[0].targetModels: Invalid value: 0: total weight must be greater than zero",
        ),
        (
            uri("("),
            "spec.rules[0].modelMatch.uri.regex: Invalid value: \"(\": invalid regex: unclosed group",
        ),
    ] {
        assert_eq!(
            refusal(Kind::ModelRoute, &spec),
            format!("validation failed:\n  - {said}")
        );
    }
    let one_of_two = route(&json!({"rules": [{"targetModels": [
        {"modelServerName": "a", "weight": 0}, {"modelServerName": "b"},
    ]}]}));
    let verdict = review(Kind::ModelRoute, object(Kind::ModelRoute, &one_of_two));
    assert_eq!(verdict.refusal, None, "a missing weight counts 100");
}

#[test]
fn one_refusal_of_each_rule_for_servers() {
    let selector = |rest: Value| server(&json!({"workloadSelector": rest}));
    let group = |group: Value| selector(json!({"matchLabels": {"a": "b"}, "pdGroup": group}));
    let sticky = |sticky: Value| server(&json!({"trafficPolicy": {"sessionSticky": sticky}}));
    let labels = json!({"a": "b"});
    for (spec, said) in [
        (
            selector(Value::Null),
            "spec.workloadSelector: Required value: workloadSelector must be specified",
        ),
        (
            selector(json!({})),
            "spec.workloadSelector.matchLabels: Required value: labels must contain at least one label",
        ),
        (
            selector(json!({"matchLabels": {"a b": "c"}})),
            "spec.workloadSelector.matchLabels[a b]: Invalid value: \"a b\": invalid selector: invalid label key",
        ),
        (
            group(json!({"groupKey": "", "prefillLabels": labels, "decodeLabels": labels})),
            "spec.workloadSelector.pdGroup.groupKey: Required value: groupKey must be specified",
        ),
        (
            group(json!({"groupKey": "g", "prefillLabels": {}, "decodeLabels": labels})),
            "spec.workloadSelector.pdGroup.prefillLabels: Required value: labels must contain at least one label",
        ),
        (
            group(json!({"groupKey": "g", "prefillLabels": labels})),
            "spec.workloadSelector.pdGroup.decodeLabels: Required value: labels must contain at least one label",
        ),
        (
            sticky(json!({"sources": []})),
            "spec.trafficPolicy.sessionSticky.sources: Required value: sources must be non-empty when sessionSticky is set",
        ),
        (
            sticky(
                json!({"sessionAffinitySeconds": 0, "sources": [{"type": "Header", "name": "x"}]}),
            ),
            "spec.trafficPolicy.sessionSticky.sessionAffinitySeconds: Invalid value: 0: must be in the range 1..2147483647",
        ),
    ] {
        assert_eq!(
            refusal(Kind::ModelServer, &spec),
            format!("validation failed:   - {said}")
        );
    }
    let two = group(json!({"groupKey": ""}));
    assert_eq!(
        refusal(Kind::ModelServer, &two),
        "validation failed:   - spec.workloadSelector.pdGroup.prefillLabels: Required value: labels must contain at least \
         one label  - spec.workloadSelector.pdGroup.decodeLabels: Required value: labels must contain at least one label  \
         - spec.workloadSelector.pdGroup.groupKey: Required value: groupKey must be specified"
    );
}

#[test]
fn one_refusal_of_each_rule_for_providers() {
    let url = |url: &str| provider(&json!({"baseURL": url}));
    let header = |name: &str, value: &str| provider(&json!({"headers": {name: value}}));
    let secret = |secret: Value| provider(&json!({"auth": {"secretRef": secret}}));
    const URL: &str =
        "spec.baseURL: Invalid value: baseURL must not contain userinfo, query, or fragment";
    for (spec, said) in [
        (
            provider(&json!({"providerType": "Own"})),
            "spec.providerType: Unsupported value: \"Own\": supported values: \"OpenAI\", \"Anthropic\"",
        ),
        (
            provider(&json!({"auth": {"scheme": "Basic", "secretRef": {"name": "s", "key": "k"}}})),
            "spec.auth.scheme: Unsupported value: \"Basic\": supported values: \"Bearer\", \"APIKey\"",
        ),
        (
            url("http://example.com"),
            "spec.baseURL: Invalid value: baseURL must use https",
        ),
        (url("https://u@example.com"), URL),
        (url("https://example.com?a"), URL),
        (url("https://example.com#a"), URL),
        (
            header("a b", "c"),
            "spec.headers[a b]: Invalid value: \"a b\": header name is invalid",
        ),
        (
            header("a", "b\r\nc"),
            "spec.headers[a]: Invalid value: header value must not contain CR or LF",
        ),
        (
            header("Authorization", "b"),
            "spec.headers[Authorization]: Invalid value: \"Authorization\": header is reserved and cannot be configured as \
             a static header",
        ),
        (
            secret(json!({"key": "k"})),
            "spec.auth.secretRef.name: Required value: secret name is required",
        ),
        (
            secret(json!({"name": "s", "key": ""})),
            "spec.auth.secretRef.key: Required value: secret key is required",
        ),
        (
            secret(json!({"name": "s", "key": "k", "optional": true})),
            "spec.auth.secretRef.optional: Invalid value: true: optional must be false or unset",
        ),
    ] {
        assert_eq!(
            refusal(Kind::ExternalModelProvider, &spec),
            format!("validation failed:\n  - {said}")
        );
    }
}

#[test]
fn metadata_is_the_api_servers_to_judge() {
    let mut new = object(Kind::ModelRoute, &route(&json!({})));
    new["metadata"] = json!({"generateName": "x-", "managedFields": [{"manager": "kubectl"}]});
    assert_eq!(review(Kind::ModelRoute, new).refusal, None);
}

#[test]
fn an_object_that_is_being_deleted_can_lose_its_finalizers() {
    let mut bad = object(Kind::ModelServer, &json!({}));
    assert!(review(Kind::ModelServer, bad.clone()).refusal.is_some());
    bad["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(review(Kind::ModelServer, bad).refusal, None);
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let limited = route(&json!({"parentRefs": [{"name": "g"}]}));
    let Verdict { refusal, warnings } =
        review(Kind::ModelRoute, object(Kind::ModelRoute, &limited));
    assert_eq!(
        (refusal, warnings),
        (
            None,
            vec![
                "spec.parentRefs: the route is tied to gateways and is skipped while the Gateway API is off"
                    .to_owned()
            ]
        )
    );
}

fn asked(object: &Value) -> Vec<u8> {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "CREATE", "dryRun": false, "object": object, "oldObject": null},
    })
    .to_string()
    .into_bytes()
}

fn answered(kind: Kind, body: &[u8]) -> Value {
    serde_json::from_slice(&answer(kind, body).unwrap()).unwrap()
}

#[test]
fn a_review_is_answered_under_its_uid() {
    let good = object(Kind::ModelRoute, &route(&json!({})));
    assert_eq!(
        answered(Kind::ModelRoute, &asked(&good)),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "u-1", "allowed": true}})
    );
    let bad = object(Kind::ModelRoute, &route(&json!({"modelName": ""})));
    assert_eq!(
        answered(Kind::ModelRoute, &asked(&bad))["response"],
        json!({"uid": "u-1", "allowed": false, "status": {
            "message": "validation failed:\n  - spec: Required value: either modelName or loraAdapters must be specified",
        }})
    );
}

#[test]
fn a_review_of_another_kind_is_refused() {
    let route = object(Kind::ModelRoute, &route(&json!({})));
    let response = &answered(Kind::ModelServer, &asked(&route))["response"];
    assert_eq!(response["allowed"], false);
    assert_eq!(
        response["status"]["message"],
        "validation failed:   - kind: Invalid value: \"ModelRoute\": must be ModelServer"
    );
}

#[test]
fn what_is_no_review_is_an_error() {
    for (body, said) in [
        ("{", "failed to decode body: "),
        ("[]", "failed to decode body: "),
        (
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "request": {"uid": "u"}}"#,
            "unsupported AdmissionReview of admission.k8s.io/v1beta1, expected AdmissionReview of admission.k8s.io/v1",
        ),
        (
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#,
            "the AdmissionReview has no request",
        ),
        (
            r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}"#,
            "failed to decode ModelRoute: the request has no object",
        ),
    ] {
        let error = answer(Kind::ModelRoute, body.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(said), "{error}");
    }
}
