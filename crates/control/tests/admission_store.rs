//! The certificate's Secret and the API server's trust, against a scripted API server.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use control::admission::{Pem, Store, generate};
use e2e::{Exchange, ScriptedApi};
use serde_json::{Value, json};

const SECRETS: &str = "/api/v1/namespaces/router/secrets";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/the-webhook";

fn store(api: &ScriptedApi) -> Store {
    let config = kube::Config::new(api.url.parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    Store::new(client, "router", "certs", "the-webhook")
}

fn secret(data: Value) -> Value {
    // As a real API server sends it, managed fields and all.
    json!({
        "kind": "Secret", "apiVersion": "v1", "type": "kubernetes.io/tls", "data": data,
        "metadata": {
            "name": "certs", "namespace": "router", "uid": "6e1c8a5e-6a4a-4b57-9a7b-0d5d0f0a1c11",
            "resourceVersion": "812", "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{
                "manager": "kthena-router", "operation": "Update", "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {".": {}, "f:ca.crt": {}}, "f:type": {}},
            }],
        },
    })
}

/// `crt`, `key` and `ca.` in base64.
fn complete() -> Value {
    secret(json!({"tls.crt": "Y3J0", "tls.key": "a2V5", "ca.crt": "Y2Eu"}))
}

fn pem(certificate: &str, key: &str, authority: Option<&str>) -> Pem {
    Pem {
        certificate: certificate.into(),
        key: key.into(),
        authority: authority.map(Into::into),
    }
}

fn configuration(webhooks: Value) -> Value {
    json!({
        "kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "the-webhook", "resourceVersion": "7"}, "webhooks": webhooks,
    })
}

fn webhook(name: &str, bundle: Option<&str>) -> Value {
    let mut config = json!({"service": {"name": "s", "namespace": "router", "path": "/validate/x", "port": 443}});
    if let Some(bundle) = bundle {
        config["caBundle"] = bundle.into();
    }
    json!({
        "name": name, "clientConfig": config, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 30,
    })
}

#[tokio::test]
async fn a_secret_that_exists_is_read() {
    let get = format!("GET {SECRETS}/certs");
    let api = ScriptedApi::play([
        Exchange::new(&get, 200, complete()),
        Exchange::new(
            &get,
            200,
            secret(json!({"tls.crt": "Y3J0", "tls.key": "a2V5"})),
        ),
        Exchange::refused(&get, 404, "NotFound"),
    ])
    .await;
    let store = store(&api);
    assert_eq!(
        store.read().await.unwrap(),
        Some(pem("crt", "key", Some("ca.")))
    );
    assert_eq!(store.read().await.unwrap(), Some(pem("crt", "key", None)));
    assert_eq!(store.read().await.unwrap(), None);
    api.played().await;
}

#[tokio::test]
async fn a_secret_that_is_of_no_use_is_named() {
    let get = format!("GET {SECRETS}/certs");
    let api = ScriptedApi::play([
        Exchange::new(&get, 200, secret(json!({"tls.crt": "Y3J0", "tls.key": ""}))),
        Exchange::new(&get, 200, secret(Value::Null)),
        Exchange::refused(&get, 403, "Forbidden"),
    ])
    .await;
    let store = store(&api);
    for said in [
        "the Secret router/certs has no tls.key",
        "the Secret router/certs has no tls.crt",
        "cannot read the Secret router/certs: ",
    ] {
        let error = store.read().await.unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
        assert!(
            !error.contains("crt\"") && !error.contains("Y3J0"),
            "{error}"
        );
    }
    api.played().await;
}

#[tokio::test]
async fn a_new_certificate_is_stored_as_a_tls_secret() {
    let api = ScriptedApi::play([Exchange::new(format!("POST {SECRETS}"), 201, complete())]).await;
    let made = pem("crt", "key", Some("ca."));
    assert_eq!(store(&api).create(made.clone()).await.unwrap(), made);
    let sent = &api.played().await[0];
    assert_eq!(sent["type"], "kubernetes.io/tls");
    assert_eq!(sent["metadata"], json!({"name": "certs"}));
    assert_eq!(
        sent["data"],
        json!({"tls.crt": "Y3J0", "tls.key": "a2V5", "ca.crt": "Y2Eu"})
    );
}

#[tokio::test]
async fn of_two_routers_the_first_ones_certificate_is_used() {
    let api = ScriptedApi::play([
        Exchange::refused(format!("POST {SECRETS}"), 409, "AlreadyExists"),
        Exchange::new(format!("GET {SECRETS}/certs"), 200, complete()),
    ])
    .await;
    let second = pem("other crt", "other key", Some("other ca"));
    assert_eq!(
        store(&api).create(second).await.unwrap(),
        pem("crt", "key", Some("ca."))
    );
    api.played().await;
}

#[tokio::test]
async fn each_webhook_without_the_authority_is_told() {
    let api = ScriptedApi::play([
        Exchange::new(
            format!("GET {CONFIGURATION}"),
            200,
            configuration(json!([
                webhook("new", None),
                webhook("right", Some("Y2Eu")),
                webhook("one of two", Some("b2xkCmNhLgo=")),
                webhook("old", Some("b2xk")),
            ])),
        ),
        Exchange::new(
            format!("PATCH {CONFIGURATION}"),
            200,
            configuration(json!([])),
        ),
    ])
    .await;
    assert!(store(&api).trust(b"ca.").await.unwrap());
    assert_eq!(
        api.played().await[1],
        json!({"webhooks": [
            {"name": "new", "clientConfig": {"caBundle": "Y2Eu"}},
            {"name": "old", "clientConfig": {"caBundle": "Y2Eu"}},
        ]})
    );
}

#[tokio::test]
async fn a_configuration_that_is_right_absent_or_written_by_others_is_left_alone() {
    let get = format!("GET {CONFIGURATION}");
    let mut injected = configuration(json!([webhook("a", None)]));
    injected["metadata"]["annotations"] =
        json!({"cert-manager.io/inject-ca-from": "router/webhook-cert"});
    let api = ScriptedApi::play([
        Exchange::new(
            &get,
            200,
            configuration(json!([webhook("a", Some("Y2Eu"))])),
        ),
        Exchange::new(&get, 200, configuration(Value::Null)),
        Exchange::new(&get, 200, injected),
        Exchange::refused(&get, 404, "NotFound"),
    ])
    .await;
    let store = store(&api);
    for _ in 0..4 {
        assert!(!store.trust(b"ca.").await.unwrap());
    }
    api.played().await;
}

#[tokio::test]
async fn a_router_that_may_not_change_the_configuration_says_so() {
    let api = ScriptedApi::play([
        Exchange::new(
            format!("GET {CONFIGURATION}"),
            200,
            configuration(json!([webhook("a", None)])),
        ),
        Exchange::refused(format!("PATCH {CONFIGURATION}"), 403, "Forbidden"),
    ])
    .await;
    let error = store(&api).trust(b"ca.").await.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot change the ValidatingWebhookConfiguration the-webhook: "),
        "{error}"
    );
    api.played().await;
}

#[test]
fn a_certificate_is_made_anew_each_time_and_shows_no_key() {
    let names = ["webhook.router.svc".to_owned()];
    let (one, two) = (
        generate(&names, 2026).unwrap(),
        generate(&names, 2026).unwrap(),
    );
    assert!(one.key != two.key && one.authority != two.authority);
    assert_eq!(format!("{one:?}"), "Pem { .. }");
    assert!(generate(&["no name at all \u{e4}".to_owned()], 2026).is_err());
}
