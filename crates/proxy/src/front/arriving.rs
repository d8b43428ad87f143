//! A connection whose first bytes must come in time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What an HTTP/2 client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Ends reading with an error if the bytes that tell HTTP/1.1 from HTTP/2 do not come within a limit. The server waits
/// for them without one; from then on it has its own time-outs.
#[derive(Debug)]
pub(super) struct Arriving<S> {
    stream: S,
    /// Bytes of the preface that came.
    seen: usize,
    /// Until it is known what the client speaks.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Arriving<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            seen: 0,
            deadline: Some(Box::pin(tokio::time::sleep(limit))),
        }
    }

    /// Notes what came. Anything but a part of the preface decides.
    fn came(&mut self, bytes: &[u8]) {
        let wanted = PREFACE.get(self.seen..self.seen + bytes.len());
        self.seen += bytes.len();
        if wanted != Some(bytes) || self.seen == PREFACE.len() {
            self.deadline = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Arriving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if let Some(deadline) = &mut this.deadline {
            match read {
                Poll::Ready(_) => this.came(&buffer.filled()[before..]),
                Poll::Pending if deadline.as_mut().poll(cx).is_ready() => {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
                Poll::Pending => {}
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Arriving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
