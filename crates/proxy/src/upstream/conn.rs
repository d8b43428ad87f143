//! One HTTP/1.1 connection, polled by whoever uses it.

use super::heard::{Heard, Noting};
use super::{Payload, SendError, Stage};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use routing::fleet::Endpoint;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Longest wait for a TCP connection. An address that swallows packets would else hold a request for the two minutes
/// that the kernel repeats its SYN; a pod that is alive answers within a round trip.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest response head, and most bytes of a response read at once. A connection keeps a buffer as large as its last
/// reads were: with the library's 400 KiB, a thousand pods with metrics pages of 70 KiB hold a hundred MiB for nothing.
const READ_BUFFER: usize = 64 * 1024;

/// Longest time from a request to the news that its kept connection was closed before. The engine's RST needs one round
/// trip; the rest is for a segment that was lost. What breaks later was at work: a repeat would do the work twice.
const NEWS: Duration = Duration::from_secs(1);

/// A connection and its state machine.
pub(super) struct Conn {
    sender: SendRequest<Payload>,
    driver: Pin<Box<Connection<TokioIo<Noting>, Payload>>>,
    closed: bool,
    heard: Heard,
    /// Requests that it has carried to the end.
    served: u32,
}

impl Conn {
    /// Opens a connection.
    pub(super) async fn open(endpoint: &Endpoint) -> Result<Self, SendError> {
        let dial = TcpStream::connect((&*endpoint.host, endpoint.port));
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, dial).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(SendError::new(Stage::Connect, error)),
            Err(_) => return Err(SendError::new(Stage::Connect, "no answer in 5 s")),
        };
        // An event must leave when it is written, not when a segment is full.
        stream
            .set_nodelay(true)
            .map_err(|e| SendError::new(Stage::Connect, e))?;
        let (stream, heard) = Heard::on(stream);
        let (sender, driver) = Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|e| SendError::new(Stage::Connect, e))?;
        Ok(Self {
            sender,
            driver: Box::pin(driver),
            closed: false,
            heard,
            served: 0,
        })
    }

    /// Lets the connection make progress. Returns whether it is closed.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.closed && self.driver.as_mut().poll(cx).is_ready() {
            self.closed = true;
        }
        self.closed
    }

    /// Whether it can take a request now; looks at the socket first.
    pub(super) fn is_ready(&mut self) -> bool {
        !self.drive(&mut Context::from_waker(Waker::noop())) && self.sender.is_ready()
    }

    /// Marks the end of an exchange. Returns whether the connection can be kept.
    pub(super) fn finish(&mut self) -> bool {
        self.served += 1;
        self.is_ready()
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: Request<Payload>,
    ) -> Result<Response<Incoming>, SendError> {
        self.heard.clear();
        let sent = Instant::now();
        let mut answer = pin!(self.sender.send_request(request));
        let (driver, closed) = (&mut self.driver, &mut self.closed);
        let result = poll_fn(|cx| {
            if !*closed && driver.as_mut().poll(cx).is_ready() {
                *closed = true;
            }
            match answer.as_mut().poll(cx) {
                Poll::Ready(answer) => {
                    Poll::Ready(answer.map_err(|e| SendError::new(Stage::Head, e)))
                }
                Poll::Pending if *closed => Poll::Ready(Err(SendError::bare(Stage::Head))),
                Poll::Pending => Poll::Pending,
            }
        });
        let (reused, heard) = (self.served > 0, &self.heard);
        result.await.map_err(|mut error| {
            error.stale = reused && !heard.anything() && sent.elapsed() < NEWS;
            error
        })
    }
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn")
            .field("closed", &self.closed)
            .field("served", &self.served)
            .finish_non_exhaustive()
    }
}
