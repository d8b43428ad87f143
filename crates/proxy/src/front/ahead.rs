//! What a client sends beyond the request that it waits for.

use bytes::{Buf, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that are read ahead at most. A client that sends more while it waits is held back, and may leave unseen.
const MAX: usize = 16 << 10;
/// Flushes after which a server that has not read again is not going to. A body that arrives in pieces is read in every
/// other turn.
const TURNS: u8 = 2;

/// Reads in the server's place while it does not.
///
/// The server finds out that a client has left by reading, and it does not read as long as bytes beyond the request lie in
/// its buffer: a line end after the body, or the next request. But it flushes in each of its turns, and several flushes
/// after bytes without another attempt to read tell that it has stopped. From then on the stream is read here, until the
/// server goes on. A server that reads costs nothing.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Read, and not yet handed over.
    bytes: BytesMut,
    /// Flushes since bytes came; `None` while the server waits for more.
    flushes: Option<u8>,
}

impl Ahead {
    /// Hands over what was read ahead. Returns whether there was any.
    pub(super) fn hand_over(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let length = self.bytes.len().min(buffer.remaining());
        if length > 0 {
            buffer.put_slice(&self.bytes[..length]);
            self.bytes.advance(length);
        }
        length > 0
    }

    /// The server has read.
    pub(super) fn has_read(&mut self, got_some: bool) {
        self.flushes = got_some.then_some(0);
    }

    /// The server has flushed.
    ///
    /// # Errors
    /// When the client has left.
    pub(super) fn has_flushed<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        match &mut self.flushes {
            None => Ok(()),
            Some(flushes) if *flushes < TURNS => {
                *flushes += 1;
                // It may read in its next turn, and must have one.
                cx.waker().wake_by_ref();
                Ok(())
            }
            Some(_) => self.look(stream, cx),
        }
    }

    fn look<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        while self.bytes.len() < MAX {
            let mut piece = [0; 1 << 10];
            let mut buffer = ReadBuf::new(&mut piece);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Poll::Ready(Ok(())) => self.bytes.extend_from_slice(buffer.filled()),
            }
        }
        Ok(())
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.bytes.len()
    }
}
