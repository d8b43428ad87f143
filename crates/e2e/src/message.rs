//! HTTP/1.1 messages, read without interpretation beyond their framing, so that a test sees what was really sent.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Header fields in the order and spelling in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The first value of a name, whatever its case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// All values of a name, whatever its case.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        let same = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.0
            .iter()
            .filter(same)
            .map(|(_, v)| v.as_str())
            .collect()
    }
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Bytes still to come.
    Length(usize),
    /// Bytes still to come of this chunk; 0 before a chunk's size.
    Chunked(usize),
    /// Until the connection ends.
    ToEnd,
    /// Nothing to come.
    Done,
}

/// The next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Some of its bytes.
    Data(Vec<u8>),
    /// Its regular end.
    End,
    /// The connection ended before the body did.
    Cut,
}

/// A socket's incoming bytes. What was consumed is kept, too.
#[derive(Debug)]
pub(crate) struct Wire<R> {
    io: R,
    ahead: Vec<u8>,
    /// Every byte consumed since it was last taken.
    pub(crate) consumed: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Wire<R> {
    pub(crate) fn new(io: R) -> Self {
        Self {
            io,
            ahead: Vec::new(),
            consumed: Vec::new(),
        }
    }

    /// Waits for more bytes. False at the end of the stream, or when the connection broke.
    pub(crate) async fn fill(&mut self) -> bool {
        self.ahead.reserve(16 << 10);
        !matches!(self.io.read_buf(&mut self.ahead).await, Ok(0) | Err(_))
    }

    fn consume(&mut self, n: usize) -> Vec<u8> {
        let part: Vec<u8> = self.ahead.drain(..n).collect();
        self.consumed.extend_from_slice(&part);
        part
    }

    /// The next line without its line end; `None` when the stream ends first.
    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|w| w == b"\r\n") {
                let line = self.consume(end + 2);
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// The next message's start line and headers; `None` when the stream ends first.
    pub(crate) async fn head(&mut self) -> io::Result<Option<(String, Headers)>> {
        let Some(start) = self.line().await else {
            return Ok(None);
        };
        let mut headers = Headers::default();
        loop {
            let line = self.line().await.ok_or(io::ErrorKind::UnexpectedEof)?;
            if line.is_empty() {
                return Ok(Some((start, headers)));
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            headers.0.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The next bytes of a body, as many as are there.
    pub(crate) async fn piece(&mut self, framing: &mut Framing) -> Piece {
        match framing {
            Framing::Done | Framing::Length(0) => Piece::End,
            Framing::ToEnd => match self.some(usize::MAX).await {
                Some(data) => Piece::Data(data),
                None => Piece::End,
            },
            Framing::Length(left) => match self.some(*left).await {
                Some(data) => {
                    *left -= data.len();
                    Piece::Data(data)
                }
                None => Piece::Cut,
            },
            Framing::Chunked(_) => self.chunk(framing).await.unwrap_or(Piece::Cut),
        }
    }

    async fn chunk(&mut self, framing: &mut Framing) -> Option<Piece> {
        let Framing::Chunked(left) = framing else {
            return None;
        };
        if *left == 0 {
            let size = self.line().await?;
            *left = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
            if *left == 0 {
                while !self.line().await?.is_empty() {}
                *framing = Framing::Done;
                return Some(Piece::End);
            }
        }
        let data = self.some(*left).await?;
        *left -= data.len();
        if *left == 0 {
            self.line().await?;
        }
        Some(Piece::Data(data))
    }

    /// At least one byte and at most `most`; `None` at the end of the stream.
    async fn some(&mut self, most: usize) -> Option<Vec<u8>> {
        if self.ahead.is_empty() && !self.fill().await {
            return None;
        }
        Some(self.consume(most.min(self.ahead.len())))
    }

    /// The rest of a body; false when it was cut.
    pub(crate) async fn body(&mut self, framing: &mut Framing) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            match self.piece(framing).await {
                Piece::Data(data) => body.extend_from_slice(&data),
                Piece::End => return (body, true),
                Piece::Cut => return (body, false),
            }
        }
    }
}

/// The framing that the headers announce, or `otherwise`.
pub(crate) fn framing(headers: &Headers, otherwise: Framing) -> Framing {
    if headers
        .get("transfer-encoding")
        .is_some_and(|v| v.eq_ignore_ascii_case("chunked"))
    {
        return Framing::Chunked(0);
    }
    match headers.get("content-length") {
        Some(length) => Framing::Length(length.parse().expect("content-length is a number")),
        None => otherwise,
    }
}

/// A header block.
pub(crate) fn write_head(start: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("{start}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}
