//! One user's HTTP connection.

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use thiserror::Error;
use tokio::{
    net::TcpStream,
    time::{Duration, Instant},
};

use super::sse::Events;

/// Why a request brought no whole answer.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error("cannot connect: {0}")]
    Connect(std::io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("{status}: {body}")]
    Status { status: StatusCode, body: String },
    #[error("the stream ended early or with an error: {0}")]
    Stream(String),
    #[error("no whole answer in time")]
    Timeout,
    #[error("the address is not valid: {0}")]
    Address(#[from] http::Error),
}

/// A whole answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) first_token: Duration,
    /// The longest time between two pieces of text.
    pub(super) longest_pause: Duration,
    pub(super) total: Duration,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) completion_tokens: u64,
    /// The pod that answered, where the router says so.
    pub(super) pod: Option<String>,
}

/// Names a conversation to the router.
const X_SESSION_ID: HeaderName = HeaderName::from_static("x-session-id");
/// Names the pod to the client.
const X_BACKEND_POD: HeaderName = HeaderName::from_static("x-kthena-backend-pod");

/// A connection that is kept open between requests.
#[derive(Debug)]
pub(super) struct Client {
    authority: String,
    session: String,
    sender: Option<http1::SendRequest<Full<Bytes>>>,
}

impl Client {
    /// `authority` is `host:port`; `session` names what the requests have in common.
    pub(super) fn new(authority: &str, session: String) -> Self {
        Self {
            authority: authority.to_owned(),
            session,
            sender: None,
        }
    }

    /// Sends a request; reconnects once when the kept connection turns out to be closed.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = || {
            Request::builder()
                .method(method.clone())
                .uri(path)
                .header(header::HOST, &self.authority)
                .header(header::CONTENT_TYPE, "application/json")
                .header(X_SESSION_ID, &self.session)
                .body(Full::new(body.clone()))
        };
        if let Some(mut sender) = self.sender.take().filter(|sender| !sender.is_closed())
            && sender.ready().await.is_ok()
            && let Ok(response) = sender.send_request(request()?).await
        {
            self.sender = Some(sender);
            return Ok(response);
        }
        let request = request()?;
        let stream = TcpStream::connect(&self.authority)
            .await
            .map_err(Failure::Connect)?;
        stream.set_nodelay(true).map_err(Failure::Connect)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        self.sender = Some(sender);
        Ok(response)
    }

    /// Asks for a chat completion as a stream and reads it to its end.
    pub(super) async fn chat(&mut self, body: Bytes) -> Result<Reply, Failure> {
        let start = Instant::now();
        let response = self
            .send(Method::POST, "/v1/chat/completions", body)
            .await?;
        let status = response.status();
        let pod = response.headers().get(X_BACKEND_POD);
        let pod = pod.and_then(|pod| pod.to_str().ok()).map(str::to_owned);
        let mut body = response.into_body();
        if status != StatusCode::OK {
            let body = body.collect().await?.to_bytes();
            return Err(Failure::Status {
                status,
                body: String::from_utf8_lossy(&body).into_owned(),
            });
        }
        let mut reading = Reading::default();
        reading.reply.pod = pod;
        let mut events = Events::default();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            events.feed(&data, |data| reading.event(data, start));
        }
        reading.reply.total = start.elapsed();
        match reading {
            Reading {
                error: Some(error), ..
            } => Err(Failure::Stream(error)),
            Reading { done: false, .. } => Err(Failure::Stream("no [DONE]".to_owned())),
            Reading { reply, .. } => Ok(reply),
        }
    }
}

#[derive(Debug, Default)]
struct Reading {
    reply: Reply,
    /// When the latest piece of text came.
    last: Option<Duration>,
    done: bool,
    error: Option<String>,
}

impl Reading {
    fn event(&mut self, data: &[u8], start: Instant) {
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            self.error = Some("an event is not JSON".to_owned());
            return;
        };
        if let Some(error) = event.get("error") {
            self.error = Some(error.to_string());
        }
        if let Some(choice) = event.pointer("/choices/0") {
            if let Some(text) = choice
                .pointer("/delta/content")
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
            {
                let now = start.elapsed();
                match self.last.replace(now) {
                    None => self.reply.first_token = now,
                    Some(last) => {
                        self.reply.longest_pause = self.reply.longest_pause.max(now - last);
                    }
                }
                self.reply.text.push_str(text);
            }
            if choice.get("finish_reason").and_then(Value::as_str) == Some("abort") {
                self.error = Some("finish_reason abort".to_owned());
            }
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            let number = |path| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
            self.reply.prompt_tokens = number("/prompt_tokens");
            self.reply.cached_tokens = number("/prompt_tokens_details/cached_tokens");
            self.reply.completion_tokens = number("/completion_tokens");
        }
    }
}
