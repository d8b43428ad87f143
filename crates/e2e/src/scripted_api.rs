//! A Kubernetes API server that plays a script: for each request that must come, in order, the answer.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that must come, and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    line: String,
    status: u16,
    answer: Value,
}

impl Exchange {
    /// `line` is method and path without the query, such as `GET /api/v1/namespaces/n/secrets/s`.
    #[must_use]
    pub fn new(line: impl Into<String>, status: u16, answer: Value) -> Self {
        Self {
            line: line.into(),
            status,
            answer,
        }
    }

    /// The same with the answer of an API server that refuses, such as 404 `NotFound`.
    #[must_use]
    pub fn refused(line: impl Into<String>, status: u16, reason: &str) -> Self {
        let answer = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("scripted: {reason}"), "reason": reason, "code": status,
        });
        Self::new(line, status, answer)
    }
}

#[derive(Debug, Default)]
struct State {
    to_come: VecDeque<Exchange>,
    bodies: Vec<Value>,
    unexpected: Vec<String>,
}

/// The server, in this process.
#[derive(Debug)]
pub struct ScriptedApi {
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
    /// `http://…`
    pub url: String,
}

impl ScriptedApi {
    /// Starts it on a free port.
    pub async fn play(script: impl IntoIterator<Item = Exchange>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            to_come: script.into_iter().collect(),
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(Arc::clone(&shared), request));
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            state,
            accepting,
            url,
        }
    }

    /// Adds exchanges to the end of the script.
    pub fn then(&self, script: impl IntoIterator<Item = Exchange>) {
        self.state.lock().unwrap().to_come.extend(script);
    }

    /// Waits until the script was played to its end and returns the bodies of the requests so far, null where there was
    /// none.
    ///
    /// # Panics
    /// When a request came that the script does not have, or one of the script did not come.
    pub async fn played(&self) -> Vec<Value> {
        crate::until("the script is played to its end", async || {
            let state = self.state.lock().unwrap();
            (state.to_come.is_empty() || !state.unexpected.is_empty()).then_some(())
        })
        .await;
        let state = self.state.lock().unwrap();
        assert!(
            state.unexpected.is_empty(),
            "not in the script: {:?}",
            state.unexpected
        );
        state.bodies.clone()
    }
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn answer(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let line = format!("{} {}", request.method(), request.uri().path());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let mut state = state.lock().unwrap();
    let exchange = match state.to_come.pop_front() {
        Some(next) if next.line == line => next,
        other => {
            let wanted = other.map_or("nothing".to_owned(), |next| next.line);
            state.unexpected.push(format!("{line} instead of {wanted}"));
            Exchange::refused(line, 500, "InternalError")
        }
    };
    state
        .bodies
        .push(serde_json::from_slice(&body).unwrap_or_default());
    let mut response = Response::new(Full::from(exchange.answer.to_string()));
    *response.status_mut() = exchange.status.try_into().unwrap();
    response
        .headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}
