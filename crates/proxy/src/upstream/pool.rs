//! The connections to one pod.

use super::conn::Conn;
use super::{Payload, SendError, Stage, UpstreamBody};
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use parking_lot::Mutex;
use routing::fleet::{Endpoint, Pod};
use std::sync::Arc;
use std::time::Duration;

/// Idle connections kept for one pod. As many as an engine's usual batch; more would only hold sockets open.
const MAX_IDLE: usize = 256;

/// The connections to one pod, last used first: the others may age out at the engine.
#[derive(Debug)]
pub struct PodPool {
    endpoint: Endpoint,
    /// `Host` of requests that have none.
    host: Option<HeaderValue>,
    idle: Mutex<Vec<Conn>>,
}

impl PodPool {
    /// An empty pool.
    #[must_use]
    pub fn new(pod: &Arc<Pod>) -> Self {
        Self {
            host: HeaderValue::from_str(&pod.endpoint.to_string()).ok(),
            endpoint: pod.endpoint.clone(),
            idle: Mutex::default(),
        }
    }

    /// Sends a request and waits for the response head, `timeout` at most.
    ///
    /// A request that fails at once on a kept connection, before any response byte, goes out once more on a new connection:
    /// an engine closes idle connections after a few seconds, and its FIN may cross the request. [`Head::once`] forbids it.
    ///
    /// # Errors
    /// When there was no response head. Nothing was passed on, so another pod may be tried.
    pub async fn send(
        self: &Arc<Self>,
        head: &Head,
        body: &Payload,
        timeout: Option<Duration>,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let exchange = self.exchange(head, body);
        match timeout {
            None => exchange.await,
            Some(limit) => tokio::time::timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(SendError::bare(Stage::Timeout))),
        }
    }

    async fn exchange(
        self: &Arc<Self>,
        head: &Head,
        body: &Payload,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let mut conn = match self.take_idle() {
            Some(conn) => conn,
            None => Conn::open(&self.endpoint).await?,
        };
        let host = self.host.as_ref();
        let response = match conn.send(head.request(body, host)).await {
            Err(error) if error.stale && !head.once => {
                conn = Conn::open(&self.endpoint).await?;
                conn.send(head.request(body, host)).await?
            }
            other => other?,
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(SendError::bare(Stage::Switched));
        }
        Ok(response.map(|incoming| UpstreamBody::new(incoming, conn, Arc::clone(self))))
    }

    fn take_idle(&self) -> Option<Conn> {
        loop {
            let mut conn = self.idle.lock().pop()?;
            if conn.is_ready() {
                return Some(conn);
            }
        }
    }

    pub(super) fn keep(&self, conn: Conn) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(conn);
        }
    }

    /// Connections that wait for a request.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.lock().len()
    }

    /// Drops idle connections that the engine has closed.
    pub(super) fn sweep(&self) {
        let taken = std::mem::take(&mut *self.idle.lock());
        let mut open: Vec<_> = taken
            .into_iter()
            .filter_map(|mut c| c.is_ready().then_some(c))
            .collect();
        let mut idle = self.idle.lock();
        // What came back meanwhile is the fresher.
        open.append(&mut idle);
        *idle = open;
    }
}

/// The head of a request to a pod, kept for repeats.
#[derive(Clone, Debug)]
pub struct Head {
    /// Method.
    pub method: Method,
    /// Origin form: path and query.
    pub uri: Uri,
    /// End-to-end headers.
    pub headers: HeaderMap,
    /// Never sent a second time, whatever the first try came to: the body is good for one exchange only.
    pub once: bool,
}

impl Head {
    fn request(&self, body: &Payload, host: Option<&HeaderValue>) -> Request<Payload> {
        let mut request = Request::new(body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = self.headers.clone();
        if let Some(host) = host {
            // HTTP/1.1 requires one.
            request
                .headers_mut()
                .entry(HOST)
                .or_insert_with(|| host.clone());
        }
        if !body.is_empty() || self.method == Method::POST {
            request
                .headers_mut()
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        request
    }
}
