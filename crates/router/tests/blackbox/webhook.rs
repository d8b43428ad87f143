//! The admission webhook of a router on a cluster.

use crate::setup;
use e2e::{ApiServer, CertificateAuthority, Router, TlsClient, until};
use http::Request;
use serde_json::{Value, json};
use std::net::TcpListener;

const HOST: &str = "kthena-router-webhook.default.svc";

/// A router on this cluster whose webhook has the certificate of the files.
async fn router(api: &ApiServer, authority: &CertificateAuthority) -> (Router, u16) {
    let (certificate, key) = authority.sign(HOST);
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let router = setup()
        .cluster(api)
        .manifest("../webhook.crt", &certificate)
        .manifest("../webhook.key", &key)
        .flags(&["--enable-webhook=true", "--webhook-port", &port.to_string()])
        .flags(&["--webhook-tls-cert-file", "webhook.crt"])
        .flags(&["--webhook-tls-private-key-file", "webhook.key"])
        .start()
        .await;
    (router, port)
}

#[tokio::test]
async fn it_reviews_objects_over_https() {
    let (api, authority) = (ApiServer::start().await, CertificateAuthority::default());
    let (router, port) = router(&api, &authority).await;
    router
        .log
        .has("serving with the certificate of webhook.crt")
        .await;
    let client = TlsClient::new(authority.pem().as_bytes()).offering_h2();
    let health = Request::get("/healthz").body(String::new()).unwrap();
    let answer = Box::pin(client.send(port, HOST, health)).await.unwrap();
    assert_eq!(&answer.body()[..], b"ok");

    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "object": {
            "apiVersion": "networking.serving.volcano.sh/v1alpha1", "kind": "ModelRoute",
            "metadata": {"name": "x"}, "spec": {"rules": [{"targetModels": [{"modelServerName": "a"}]}]},
        },
    }});
    let request = Request::post("/validate/modelroute?timeout=30s")
        .header("content-type", "application/json")
        .body(review.to_string())
        .unwrap();
    let answer = Box::pin(client.send(port, HOST, request)).await.unwrap();
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(
        body["response"]["status"]["message"],
        "validation failed:\n  - spec: Required value: either modelName or loraAdapters must be specified"
    );
}

#[tokio::test]
async fn without_a_certificate_requests_are_served_all_the_same() {
    let api = ApiServer::start().await;
    let router = setup()
        .cluster(&api)
        .flags(&["--enable-webhook=true", "--webhook-port", "0"])
        .flags(&["--webhook-tls-cert-file", "no.crt"])
        .start()
        .await;
    let line = router.log.has("webhook: cannot create the Secret").await;
    assert!(line.contains("objects cannot be validated"), "{line}");
    until("it serves", async || {
        (router.get(router.port, "/readyz").await.status == 200).then_some(())
    })
    .await;
}
