//! The webhook between a scripted API server and a TLS client that trusts what the API server was told to trust.

use super::keeper::Keeper;
use super::serve;
use super::server::Reviews;
use control::admission::{Pem, Store, generate};
use control::resources::{API_VERSION, Kind};
use e2e::{Exchange, ScriptedApi, TlsClient, until};
use http::{Request, StatusCode};
use proxy::tls::{Certificate, CertificateFiles, Tls};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const SECRETS: &str = "/api/v1/namespaces/router/secrets";
const CONFIGURATION: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/\
                             kthena-router-validating-webhook";
const HOST: &str = "kthena-router-webhook.router.svc";

/// A webhook that is served until this is dropped.
struct Served {
    port: u16,
    _dir: TempDir,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    async fn start(api: &ScriptedApi, files: Option<&Pem>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = match files {
            Some(pem) => files_in(&dir, pem),
            None => paths_in(&dir),
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(serve(listener, store(api), paths, "kthena-router-webhook"));
        Self {
            port,
            task,
            _dir: dir,
        }
    }

    /// Waits until this authority's certificate is served.
    async fn serves(&self, authority: &[u8]) -> TlsClient {
        let client = TlsClient::new(authority);
        until("the certificate is served", async || {
            client.connect(self.port, HOST).await.ok()
        })
        .await;
        client
    }
}

fn store(api: &ScriptedApi) -> Store {
    let config = kube::Config::new(api.url.parse().unwrap());
    let client = kube::Client::try_from(config).unwrap();
    Store::new(client, "router", "certs", super::CONFIGURATION)
}

fn paths_in(dir: &TempDir) -> CertificateFiles {
    CertificateFiles {
        certificate: dir.path().join("tls.crt"),
        key: dir.path().join("tls.key"),
    }
}

fn files_in(dir: &TempDir, pem: &Pem) -> CertificateFiles {
    let paths = paths_in(dir);
    std::fs::write(&paths.certificate, &pem.certificate).unwrap();
    std::fs::write(&paths.key, &pem.key).unwrap();
    paths
}

fn secret(pem: &Pem) -> Value {
    let bytes =
        |content: &[u8]| serde_json::to_value(k8s_openapi::ByteString(content.to_vec())).unwrap();
    json!({
        "kind": "Secret", "apiVersion": "v1", "type": "kubernetes.io/tls",
        "metadata": {"name": "certs", "namespace": "router"},
        "data": {
            "tls.crt": bytes(&pem.certificate), "tls.key": bytes(&pem.key),
            "ca.crt": bytes(pem.authority.as_deref().unwrap()),
        },
    })
}

fn configuration(bundle: Option<&Value>) -> Value {
    let mut webhook = json!({
        "name": "validate-modelroute.volcano.sh", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": {"name": "kthena-router-webhook", "namespace": "router"}},
    });
    if let Some(bundle) = bundle {
        webhook["clientConfig"]["caBundle"] = bundle.clone();
    }
    json!({
        "kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": super::CONFIGURATION}, "webhooks": [webhook],
    })
}

fn made(name: &str) -> Pem {
    generate(&[name.to_owned()], 2026).unwrap()
}

/// What a field in base64 holds.
fn decoded(field: &Value) -> Vec<u8> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(field.clone()).unwrap();
    bytes.0
}

/// A webhook with the certificate of a Secret.
async fn ready() -> (ScriptedApi, Served, TlsClient) {
    let pem = made(HOST);
    let data = secret(&pem);
    let api = ScriptedApi::play([
        Exchange::new(format!("GET {SECRETS}/certs"), 200, data.clone()),
        Exchange::new(
            format!("GET {CONFIGURATION}"),
            200,
            configuration(Some(&data["data"]["ca.crt"])),
        ),
    ])
    .await;
    let served = Served::start(&api, None).await;
    let client = served.serves(&pem.authority.unwrap()).await;
    (api, served, client)
}

#[tokio::test]
async fn the_certificate_of_the_secret_comes_first() {
    // The files hold another one, which is not served.
    let (secret_pem, files) = (made(HOST), made(HOST));
    let data = secret(&secret_pem);
    let api = ScriptedApi::play([
        Exchange::new(format!("GET {SECRETS}/certs"), 200, data.clone()),
        Exchange::new(format!("GET {CONFIGURATION}"), 200, configuration(None)),
        Exchange::new(
            format!("PATCH {CONFIGURATION}"),
            200,
            configuration(Some(&data["data"]["ca.crt"])),
        ),
    ])
    .await;
    let served = Served::start(&api, Some(&files)).await;
    served.serves(&secret_pem.authority.unwrap()).await;
    let sent = api.played().await;
    assert_eq!(
        sent[2]["webhooks"][0]["clientConfig"]["caBundle"],
        data["data"]["ca.crt"]
    );
}

#[tokio::test]
async fn without_a_secret_the_files_are_served_and_nobody_is_told() {
    let files = made(HOST);
    let api = ScriptedApi::play([Exchange::refused(
        format!("GET {SECRETS}/certs"),
        404,
        "NotFound",
    )])
    .await;
    let served = Served::start(&api, Some(&files)).await;
    served.serves(&files.authority.unwrap()).await;
    api.played().await;
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_leaves_the_files() {
    let files = made(HOST);
    let api = ScriptedApi::play([Exchange::refused(
        format!("GET {SECRETS}/certs"),
        403,
        "Forbidden",
    )])
    .await;
    let served = Served::start(&api, Some(&files)).await;
    served.serves(&files.authority.unwrap()).await;
    api.played().await;
}

#[tokio::test]
async fn without_either_a_certificate_is_made_stored_and_trusted() {
    let api = ScriptedApi::play([
        Exchange::refused(format!("GET {SECRETS}/certs"), 404, "NotFound"),
        Exchange::new(format!("POST {SECRETS}"), 201, secret(&made(HOST))),
        Exchange::new(format!("GET {CONFIGURATION}"), 200, configuration(None)),
        Exchange::new(format!("PATCH {CONFIGURATION}"), 200, configuration(None)),
    ])
    .await;
    let served = Served::start(&api, None).await;
    let sent = api.played().await;
    let authority = decoded(&sent[1]["data"]["ca.crt"]);
    let bundle = &sent[3]["webhooks"][0]["clientConfig"]["caBundle"];
    assert_eq!(decoded(bundle), authority);
    let client = served.serves(&authority).await;
    let long = format!("{HOST}.cluster.local");
    client.connect(served.port, &long).await.unwrap();
    assert!(client.connect(served.port, "example.com").await.is_err());
}

#[tokio::test]
async fn a_renewed_secret_and_renewed_files_are_served_at_the_next_look() {
    let (old, new, files) = (made(HOST), made(HOST), made(HOST));
    let exchanges = |pem: &Pem| {
        let data = secret(pem);
        let told = configuration(Some(&data["data"]["ca.crt"]));
        [
            Exchange::new(format!("GET {SECRETS}/certs"), 200, data),
            Exchange::new(format!("GET {CONFIGURATION}"), 200, told),
        ]
    };
    let gone = Exchange::refused(format!("GET {SECRETS}/certs"), 404, "NotFound");
    let api = ScriptedApi::play(
        exchanges(&old)
            .into_iter()
            .chain(exchanges(&new))
            .chain([gone]),
    )
    .await;
    let dir = tempfile::tempdir().unwrap();
    let paths = files_in(&dir, &files);
    let certificate = Arc::new(Certificate::default());
    let mut keeper = Keeper::new(
        store(&api),
        paths,
        "kthena-router-webhook",
        Arc::clone(&certificate),
    );
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tls = Tls::new(certificate).unwrap();
    let reviews = Reviews::default();
    let serving = tokio::spawn(proxy::front::serve_tls(listener, tls, move |request| {
        reviews.clone().answer(request)
    }));
    for pem in [&old, &new, &files] {
        keeper.look().await.unwrap();
        let client = TlsClient::new(pem.authority.as_ref().unwrap());
        client.connect(port, HOST).await.unwrap();
    }
    api.played().await;
    serving.abort();
}

fn review(kind: Kind, spec: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u-1", "operation": "CREATE", "object": {
            "apiVersion": API_VERSION, "kind": kind.as_str(), "metadata": {"name": "x", "namespace": "n"}, "spec": spec,
        }},
    })
    .to_string()
}

fn post(path: &str, media: &str, body: impl Into<String>) -> Request<String> {
    Request::post(path)
        .header("content-type", media)
        .body(body.into())
        .unwrap()
}

#[tokio::test]
async fn each_path_reviews_its_kind() {
    let (_api, served, client) = ready().await;
    let good = [
        (
            "/validate/modelserver",
            Kind::ModelServer,
            json!({"inferenceEngine": "vLLM", "workloadPort": {"port": 1},
                   "workloadSelector": {"matchLabels": {"a": "b"}}}),
        ),
        (
            "/validate/modelroute",
            Kind::ModelRoute,
            json!({"modelName": "m", "rules": [{"targetModels": [{"modelServerName": "a"}]}]}),
        ),
        (
            "/validate/externalmodelprovider",
            Kind::ExternalModelProvider,
            json!({"baseURL": "https://example.com"}),
        ),
    ];
    // As an API server asks: HTTP/2 by ALPN.
    for (path, kind, spec) in good {
        for (spec, allowed) in [(&spec, true), (&json!({}), false)] {
            let request = post(
                &format!("{path}?timeout=30s"),
                "application/json",
                review(kind, spec),
            );
            let client = client.clone().offering_h2();
            let answer = client.send(served.port, HOST, request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.headers()["content-type"], "application/json");
            let body: Value = serde_json::from_slice(answer.body()).unwrap();
            assert_eq!(body["kind"], "AdmissionReview");
            assert_eq!(body["response"]["uid"], "u-1");
            assert_eq!(body["response"]["allowed"], allowed, "{body}");
        }
    }
}

#[tokio::test]
async fn what_is_not_reviewed_has_a_status_and_a_reason() {
    let (_api, served, client) = ready().await;
    let route = "/validate/modelroute";
    let large = format!(
        "{}{}",
        " ".repeat(8 << 20),
        review(Kind::ModelRoute, &json!({}))
    );
    for (request, status, said) in [
        (
            post(route, "application/yaml", "{}"),
            400,
            "invalid Content-Type, expected application/json, got application/yaml",
        ),
        (
            Request::get(route).body(String::new()).unwrap(),
            400,
            "invalid Content-Type, expected application/json, got ",
        ),
        (
            post(route, "application/json; charset=utf-8", "{"),
            400,
            "failed to decode body: EOF while parsing an object at line 1 column 1",
        ),
        (
            post(route, "application/json", large),
            413,
            "the body is larger than 7340032 bytes",
        ),
        (
            post("/validate/pod", "application/json", "{}"),
            404,
            "404 page not found",
        ),
        (
            Request::get("/healthz").body(String::new()).unwrap(),
            200,
            "ok",
        ),
    ] {
        let client = client.clone().offering_h2();
        let answer = client.send(served.port, HOST, request).await.unwrap();
        let body = String::from_utf8_lossy(answer.body()).into_owned();
        assert_eq!((answer.status().as_u16(), body.as_str()), (status, said));
    }
}
