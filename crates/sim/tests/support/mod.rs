//! Helpers of the live tests: raw HTTP over a socket, so that bytes are compared and not a client's view of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use sim::{
    live::{LiveEngine, LiveOptions},
    model::EngineParams,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Longest wait of a test for anything; reached only by a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The engine that the recordings are compared with: block size and window of the recorded one.
pub(crate) fn recorded_params() -> EngineParams {
    EngineParams {
        block_size: 32,
        num_blocks: 32_768,
        max_model_len: 8_192,
        ..EngineParams::datacentre_7b()
    }
}

/// Options of a fast engine that serves `tiny`.
pub(crate) fn fast() -> LiveOptions {
    LiveOptions {
        model_names: vec!["tiny".to_owned()],
        time_scale: 200.0,
        ..LiveOptions::default()
    }
}

pub(crate) async fn engine(params: EngineParams, options: LiveOptions) -> LiveEngine {
    LiveEngine::start_local(params, options)
        .await
        .expect("the engine starts")
}

/// A response taken apart.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The body's chunks when it was chunked.
    pub(crate) chunks: Vec<Vec<u8>>,
}

impl Response {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let at = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a whole head");
        let head = String::from_utf8(bytes[..at].to_vec()).expect("an ASCII head");
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap_or_default()
            .split_once(' ')
            .map_or("", |(_, status)| status)
            .to_owned();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let rest = &bytes[at + 4..];
        let chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let chunks = if chunked { dechunk(rest) } else { Vec::new() };
        let body = if chunked {
            chunks.concat()
        } else {
            rest.to_vec()
        };
        Self {
            status,
            headers,
            body,
            chunks,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

fn dechunk(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        if size == 0 {
            break;
        }
        chunks.push(rest[at + 2..at + 2 + size].to_vec());
        rest = &rest[at + 2 + size + 2..];
    }
    chunks
}

/// Sends recorded bytes with `Connection: close` and reads to the end.
pub(crate) async fn replay(address: SocketAddr, request: &[u8]) -> Response {
    let line = request
        .windows(2)
        .position(|two| two == b"\r\n")
        .expect("a request line")
        + 2;
    let bytes = [&request[..line], b"Connection: close\r\n", &request[line..]].concat();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut response = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut response))
        .await
        .expect("an answer in time")
        .unwrap();
    Response::parse(&response)
}

/// The bytes of a JSON request.
pub(crate) fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The bytes of a GET request.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: sim\r\n\r\n").into_bytes()
}

/// Waits until `condition` holds, yielding in between.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("the condition holds in time");
}
