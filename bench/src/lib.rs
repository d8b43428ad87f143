//! HTTP/1.1 by hand, for both ends of a measurement: as little work as possible beside what is measured.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of the read buffer of a connection.
const BUFFER: usize = 256 << 10;

/// A connection and what was read from it but not used.
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// How the end of a body is found.
#[derive(Clone, Copy)]
pub enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// The head of a request or response.
pub struct Head {
    /// Path of a request.
    pub path: String,
    /// Status of a response, 0 for a request.
    pub status: u16,
    pub framing: Framing,
    pub keep_alive: bool,
}

impl Conn {
    pub fn new(stream: TcpStream) -> Self {
        // Fails only on a socket that is gone, which the next read tells.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
        }
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads more; false at the end of the stream.
    async fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 && (self.start == self.end || self.end == self.buffer.len()) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Err(io::Error::other(
                "a head or chunk line is longer than the buffer",
            ));
        }
        let n = self.stream.read(&mut self.buffer[self.end..]).await?;
        self.end += n;
        Ok(n > 0)
    }

    /// The next request's head; nothing when the peer closed between two.
    pub async fn request_head(&mut self) -> io::Result<Option<Head>> {
        self.head(|bytes| {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut request = httparse::Request::new(&mut headers);
            let status = request.parse(bytes).map_err(io::Error::other)?;
            let httparse::Status::Complete(n) = status else {
                return Ok(None);
            };
            let (framing, keep_alive) = framing(request.headers, Framing::Length(0));
            let path = request.path.unwrap_or("/").to_owned();
            Ok(Some((
                n,
                Head {
                    path,
                    status: 0,
                    framing,
                    keep_alive,
                },
            )))
        })
        .await
    }

    /// The next response's head; nothing when the peer closed instead.
    pub async fn response_head(&mut self) -> io::Result<Option<Head>> {
        self.head(|bytes| {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut response = httparse::Response::new(&mut headers);
            let status = response.parse(bytes).map_err(io::Error::other)?;
            let httparse::Status::Complete(n) = status else {
                return Ok(None);
            };
            let (framing, keep_alive) = framing(response.headers, Framing::UntilClose);
            Ok(Some((
                n,
                Head {
                    path: String::new(),
                    status: response.code.unwrap_or(0),
                    framing,
                    keep_alive,
                },
            )))
        })
        .await
    }

    async fn head(
        &mut self,
        parse: impl Fn(&[u8]) -> io::Result<Option<(usize, Head)>>,
    ) -> io::Result<Option<Head>> {
        loop {
            if self.start < self.end
                && let Some((n, head)) = parse(self.unread())?
            {
                self.start += n;
                return Ok(Some(head));
            }
            if !self.fill().await? {
                return if self.start == self.end {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Reads a body to its end and gives each decoded piece to `sink`.
    pub async fn body(&mut self, framing: Framing, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
        match framing {
            Framing::Length(n) => self.exactly(n, &mut sink).await,
            Framing::Chunked => loop {
                let size = self.chunk_size().await?;
                self.exactly(size, &mut sink).await?;
                // The line break after a chunk, or the empty trailer.
                self.exactly(2, &mut |_| {}).await?;
                if size == 0 {
                    return Ok(());
                }
            },
            Framing::UntilClose => loop {
                sink(self.unread());
                self.start = self.end;
                if !self.fill().await? {
                    return Ok(());
                }
            },
        }
    }

    async fn exactly(&mut self, mut left: usize, sink: &mut impl FnMut(&[u8])) -> io::Result<()> {
        while left > 0 {
            if self.start == self.end && !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let n = left.min(self.end - self.start);
            sink(&self.unread()[..n]);
            self.start += n;
            left -= n;
        }
        Ok(())
    }

    async fn chunk_size(&mut self) -> io::Result<usize> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', self.unread()) {
                let line = String::from_utf8_lossy(&self.unread()[..end]).into_owned();
                self.start += end + 1;
                let digits = line.split(';').next().unwrap_or("").trim();
                return usize::from_str_radix(digits, 16).map_err(io::Error::other);
            }
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn framing(headers: &[httparse::Header<'_>], unless_said: Framing) -> (Framing, bool) {
    let (mut framing, mut keep_alive) = (unless_said, true);
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = std::str::from_utf8(header.value)
                .ok()
                .and_then(|v| v.trim().parse().ok());
            framing = Framing::Length(length.unwrap_or(0));
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            keep_alive = !header.value.eq_ignore_ascii_case(b"close");
        }
    }
    (framing, keep_alive)
}
