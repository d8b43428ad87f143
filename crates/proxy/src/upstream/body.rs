//! The body of a pod's response; it owns the connection until its end.

use super::PodPool;
use super::conn::Conn;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Bytes of an unwanted answer that are read, at most. A refusal is shorter.
const MAX_DISCARDED: usize = 64 << 10;

/// A response body. At its end the connection goes back to the pool; dropped before, the connection is closed.
#[derive(Debug)]
pub struct UpstreamBody {
    incoming: Incoming,
    conn: Option<Conn>,
    pool: Arc<PodPool>,
}

impl UpstreamBody {
    pub(super) fn new(incoming: Incoming, conn: Conn, pool: Arc<PodPool>) -> Self {
        let mut body = Self {
            incoming,
            conn: Some(conn),
            pool,
        };
        if body.incoming.is_end_stream() {
            body.end();
        }
        body
    }

    /// Nobody wants the rest. What is there of it is read, so that the connection can be used again if that was all.
    pub(crate) fn discard(mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut left = MAX_DISCARDED;
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut self).poll_frame(&mut cx) {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    }

    fn end(&mut self) {
        if let Some(mut conn) = self.conn.take()
            && conn.finish()
        {
            self.pool.keep(conn);
        }
    }
}

/// The body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection failed, or ended before the announced end of the body.
    #[error("the pod broke off its response")]
    Broken(#[from] hyper::Error),
    /// The connection, whose end was to be the body's end, ended before the last event of a stream, or the last bracket
    /// of a document.
    #[error("the pod closed its connection before the end of its answer")]
    Unfinished,
    /// The connection is gone without a word.
    #[error("the connection to the pod is gone")]
    Gone,
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let closed = this.conn.as_mut().is_none_or(|c| c.drive(cx));
        match Pin::new(&mut this.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if this.incoming.is_end_stream() {
                    this.end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.conn = None;
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                this.end();
                Poll::Ready(None)
            }
            Poll::Pending if closed => {
                this.conn = None;
                Poll::Ready(Some(Err(BodyError::Gone)))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
