//! A client's connection as the server reads and writes it.

use super::ahead::Ahead;
use super::arriving::Arriving;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose first bytes must come in time, and that breaks when its client leaves, whether the server reads or
/// not.
#[derive(Debug)]
pub(super) struct ClientStream<S> {
    stream: S,
    arriving: Arriving,
    ahead: Ahead,
}

impl<S> ClientStream<S> {
    /// `limit`: in which the first bytes must come.
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            arriving: Arriving::within(limit),
            ahead: Ahead::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if this.ahead.hand_over(buffer) {
            this.ahead.has_read(true);
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        let came = &buffer.filled()[before..];
        this.ahead.has_read(!came.is_empty());
        match read {
            Poll::Ready(_) => this.arriving.came(came),
            Poll::Pending if this.arriving.is_late(cx) => {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending => {}
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(Pin::new(&mut this.stream).poll_flush(cx))?;
        Poll::Ready(this.ahead.has_flushed(&mut this.stream, cx))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    async fn flush(stream: &mut ClientStream<DuplexStream>) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await
    }

    #[tokio::test]
    async fn what_was_read_ahead_comes_in_order_and_bounded() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let mut stream = ClientStream::new(server, Duration::from_secs(1));
        let sent: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        client.write_all(&sent).await.unwrap();
        let mut got = vec![0; 10];
        stream.read_exact(&mut got).await.unwrap();
        for _ in 0..9 {
            flush(&mut stream).await.unwrap();
        }
        let ahead = stream.ahead.kept();
        assert!(ahead > 0 && ahead <= 16 << 10, "{ahead}");
        drop(client);
        // There is more than is read ahead: the end is still out of sight.
        flush(&mut stream).await.unwrap();
        stream.read_to_end(&mut got).await.unwrap();
        assert!(got == sent);
    }

    #[tokio::test]
    async fn a_server_that_reads_is_not_read_for() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut stream = ClientStream::new(server, Duration::from_secs(1));
        for piece in [b"ab", b"cd"] {
            client.write_all(piece).await.unwrap();
            let mut got = [0; 2];
            stream.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, piece);
            flush(&mut stream).await.unwrap();
        }
        // It waits for more: however often it flushes, the bytes are its own.
        let waits = poll_fn(|cx| {
            let mut room = [0; 8];
            let mut buffer = ReadBuf::new(&mut room);
            Poll::Ready(
                Pin::new(&mut stream)
                    .poll_read(cx, &mut buffer)
                    .is_pending(),
            )
        });
        assert!(waits.await);
        client.write_all(b"ef").await.unwrap();
        for _ in 0..9 {
            flush(&mut stream).await.unwrap();
        }
        assert!(stream.ahead.kept() == 0);
    }

    #[tokio::test]
    async fn a_client_that_leaves_breaks_the_flush() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut stream = ClientStream::new(server, Duration::from_secs(1));
        client.write_all(b"request, and more").await.unwrap();
        stream.read_exact(&mut [0; 17]).await.unwrap();
        drop(client);
        for _ in 0..2 {
            flush(&mut stream).await.unwrap();
        }
        let left = flush(&mut stream).await.unwrap_err();
        assert_eq!(left.kind(), io::ErrorKind::UnexpectedEof);
    }
}
