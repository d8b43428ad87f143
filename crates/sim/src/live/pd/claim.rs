//! A decode engine comes to a prefill engine.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};

use super::transfers::Transfers;

/// Where decode engines come; of the simulator's own making.
pub(in crate::live) const CLAIM_PATH: &str = "/sim/claim";
/// Longest wait of a decode engine for a room to be ready. SGLang gives up after 300 s.
const ROOM_PATIENCE: Duration = Duration::from_secs(30);
/// Longest time of a claim, the wait for the room aside.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers a claim: status and body.
pub(in crate::live) async fn serve_claim(
    transfers: &Transfers,
    body: &[u8],
) -> (StatusCode, Value) {
    let claim: Value = serde_json::from_slice(body).unwrap_or_default();
    let number = |name: &str| claim.get(name).and_then(Value::as_u64);
    let (Some(key), Some(digest)) = (number("key"), number("digest")) else {
        return (StatusCode::BAD_REQUEST, json!({"why": "not a claim"}));
    };
    let patience = match claim.get("wait") {
        Some(Value::Bool(true)) => ROOM_PATIENCE,
        _ => Duration::ZERO,
    };
    match transfers.claim(key, digest, patience).await {
        Ok(()) => (StatusCode::OK, json!({})),
        Err(not_here) => (StatusCode::NOT_FOUND, json!({"why": not_here.as_str()})),
    }
}

/// Goes to a prefill engine for a prompt. Says why it did not get it. `wait`: for as long as a room takes to be ready.
pub(super) async fn claim(
    host: &str,
    port: u16,
    key: u64,
    digest: u64,
    wait: bool,
) -> Result<(), String> {
    let body = json!({"key": key, "digest": digest, "wait": wait}).to_string();
    let patience = if wait {
        ROOM_PATIENCE + CLAIM_TIMEOUT
    } else {
        CLAIM_TIMEOUT
    };
    match timeout(patience, post(host, port, body)).await {
        Ok(Ok((StatusCode::OK, _))) => Ok(()),
        Ok(Ok((_, body))) => {
            let why: Value = serde_json::from_slice(&body).unwrap_or_default();
            Err(why["why"].as_str().unwrap_or("no reason given").to_owned())
        }
        Ok(Err(error)) => Err(format!("{host}:{port}: {error}")),
        Err(_) => Err(format!("{host}:{port}: no answer in time")),
    }
}

async fn post(
    host: &str,
    port: u16,
    body: String,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((address, port)).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let request = Request::post(CLAIM_PATH)
        .header(header::HOST, format!("{host}:{port}"))
        .body(Full::new(Bytes::from(body)))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, body))
    };
    let result = exchange.await;
    driver.abort();
    result
}
