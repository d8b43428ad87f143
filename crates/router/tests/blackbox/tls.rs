//! The inference port with `--tls-cert` and `--tls-key`.

use crate::{CHAT, completion, setup, streamed};
use e2e::{CertificateAuthority, Client, Pod, Router, Script, Setup, TlsClient, until};
use http::{Request, Response, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const NAME: &str = "router.example";
const FLAGS: [&str; 4] = ["--tls-cert", "tls.crt", "--tls-key", "tls.key"];

/// A router to be started with a certificate of this authority.
fn secured(authority: &CertificateAuthority, pod: &Pod) -> Setup {
    let (certificate, key) = authority.sign(NAME);
    setup()
        .pods(&[pod])
        .manifest("../tls.crt", &certificate)
        .manifest("../tls.key", &key)
        .flags(&FLAGS)
}

fn get(path: &str) -> Request<String> {
    Request::get(path).body(String::new()).unwrap()
}

fn post(body: String) -> Request<String> {
    Request::post(CHAT)
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

async fn ready(router: &Router, client: &TlsClient) {
    until("the router is ready", async || {
        let answer = Box::pin(client.send(router.port, NAME, get("/readyz"))).await;
        answer.is_ok_and(|a| a.status() == 200).then_some(())
    })
    .await;
}

async fn asked(router: &Router, client: &TlsClient, body: String) -> Response<Vec<u8>> {
    let answer = client.send(router.port, NAME, post(body)).await.unwrap();
    answer.map(|body| body.to_vec())
}

#[tokio::test]
async fn http_2_and_http_1_by_alpn() {
    let authority = CertificateAuthority::default();
    let pod = Pod::start().await;
    let router = secured(&authority, &pod).launch().await;
    let plain = TlsClient::new(authority.pem().as_bytes());
    ready(&router, &plain).await;
    for (client, version) in [
        (plain.clone(), Version::HTTP_11),
        (plain.clone().offering_h2(), Version::HTTP_2),
    ] {
        let answer = asked(&router, &client, completion("x")).await;
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        assert_eq!(answer.body(), e2e::chat_answer().as_bytes());
    }
    let (script, stream) = Script::stream();
    pod.next(script);
    stream.send(e2e::event("a"));
    stream.finish();
    let answer = asked(&router, &plain.offering_h2(), streamed("x")).await;
    assert_eq!(answer.body(), e2e::event("a").as_bytes());
    // The other two ports stay in plain text.
    assert_eq!(
        router.get(router.metrics_port, "/metrics").await.status,
        200
    );
}

#[tokio::test]
async fn tls_1_2_and_1_3_but_no_plain_text() {
    let authority = CertificateAuthority::default();
    let pod = Pod::start().await;
    let router = secured(&authority, &pod).launch().await;
    let client = TlsClient::new(authority.pem().as_bytes());
    ready(&router, &client).await;
    for version in e2e::TLS_VERSIONS {
        let stream = client
            .clone()
            .only(version)
            .connect(router.port, NAME)
            .await;
        let used = stream.unwrap().get_ref().1.protocol_version();
        assert_eq!(used, Some(version.version));
    }
    let other = TlsClient::new(CertificateAuthority::default().pem().as_bytes());
    assert!(other.connect(router.port, NAME).await.is_err());
    let mut plain = Client::connect(router.port).await;
    plain
        .send(b"GET /healthz HTTP/1.1\r\nhost: router\r\n\r\n")
        .await;
    let (said, _) = plain.rest().await;
    assert!(!said.starts_with(b"HTTP/"), "{said:?}");
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let (old, new) = (
        CertificateAuthority::default(),
        CertificateAuthority::default(),
    );
    let pod = Pod::start().await;
    let router = secured(&old, &pod).launch().await;
    let (of_old, of_new) = (
        TlsClient::new(old.pem().as_bytes()),
        TlsClient::new(new.pem().as_bytes()),
    );
    ready(&router, &of_old).await;
    let kept = of_old.connect(router.port, NAME).await.unwrap();

    let (certificate, key) = new.sign(NAME);
    std::fs::write(router.dir().join("tls.crt"), certificate).unwrap();
    router
        .log
        .has("not renewed, the one before stays in force")
        .await;
    of_old.connect(router.port, NAME).await.unwrap();

    std::fs::write(router.dir().join("tls.key"), key).unwrap();
    router.log.has("certificate tls.crt renewed").await;
    of_new.connect(router.port, NAME).await.unwrap();
    assert!(of_old.connect(router.port, NAME).await.is_err());
    drop(kept);
    let complaints = router.log.lines();
    let complaints = complaints.iter().filter(|l| l.contains("not renewed"));
    assert_eq!(complaints.count(), 1, "said once");
}

#[tokio::test]
async fn a_drain_closes_secured_connections_too() {
    let authority = CertificateAuthority::default();
    let pod = Pod::start().await;
    let mut router = secured(&authority, &pod).launch().await;
    let client = TlsClient::new(authority.pem().as_bytes());
    ready(&router, &client).await;
    let mut kept = client.connect(router.port, NAME).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: router\r\n\r\n")
        .await
        .unwrap();
    let mut answer = vec![0; 1024];
    let length = kept.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"));
    router.terminate();
    assert_eq!(router.exit_code().await, Some(0));
    // An end in good order: a truncation would be an error.
    assert_eq!(kept.read(&mut answer).await.unwrap(), 0);
}

#[tokio::test]
async fn what_stops_the_start() {
    let authority = CertificateAuthority::default();
    let (certificate, _) = authority.sign(NAME);
    let (_, other_key) = authority.sign(NAME);
    for (flags, said) in [
        (
            &FLAGS[..2],
            "tls-cert and tls-key must be specified together",
        ),
        (
            &FLAGS[2..],
            "tls-cert and tls-key must be specified together",
        ),
        (&FLAGS[..], "--tls-cert, --tls-key: cannot read tls.key: "),
    ] {
        let setup = setup().manifest("../tls.crt", &certificate).flags(flags);
        let mut router = setup.launch().await;
        assert_eq!(router.exit_code().await, Some(1));
        router.log.has(said).await;
    }
    for (key, said) in [
        (&other_key, "certificate and key cannot be used together"),
        (&certificate, "not a private key in PEM"),
    ] {
        let setup = setup()
            .manifest("../tls.crt", &certificate)
            .manifest("../tls.key", key);
        let mut router = setup.flags(&FLAGS).launch().await;
        assert_eq!(router.exit_code().await, Some(1));
        router.log.has(said).await;
    }
}
