//! An HTTP/1.1 client that hides nothing: header list, arrival of pieces, and how the message ended.

use crate::message::{Framing, Headers, Piece, Wire, framing, write_head};
use crate::within;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its framing says.
    Whole,
    /// The connection ended first.
    Cut,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers as they came.
    pub headers: Headers,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// How it ended.
    pub end: End,
}

impl Answer {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON: {e}: {}", self.text()))
    }

    /// Status, `error.type` and `error.message` of an error in OpenAI's shape.
    #[must_use]
    pub fn error(&self) -> (u16, String, String) {
        let body = self.json();
        let error = &body["error"];
        assert_eq!(error["code"], self.status, "error.code is the status");
        let text = |v: &Value| v.as_str().unwrap_or_else(|| panic!("no text")).to_owned();
        (self.status, text(&error["type"]), text(&error["message"]))
    }
}

/// A connection to the router. Dropping it closes it.
#[derive(Debug)]
pub struct Client {
    wire: Wire<OwnedReadHalf>,
    write: OwnedWriteHalf,
    framing: Framing,
}

impl Client {
    /// Connects to a port of loopback.
    pub async fn connect(port: u16) -> Self {
        let stream = within("a connection", TcpStream::connect(("127.0.0.1", port)))
            .await
            .expect("the port takes connections");
        stream.set_nodelay(true).unwrap();
        let (read, write) = stream.into_split();
        Self {
            wire: Wire::new(read),
            write,
            framing: Framing::Done,
        }
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The other side may have answered and hung up already; the test reads that answer.
        let _ = within("the router reads", self.write.write_all(bytes.as_ref())).await;
    }

    /// Sends a request with a body and its length, and these headers besides.
    pub async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut all = vec![("host", "router"), ("content-length", &length)];
        if headers
            .iter()
            .all(|(name, _)| !name.eq_ignore_ascii_case("content-type"))
        {
            all.push(("content-type", "application/json"));
        }
        all.extend_from_slice(headers);
        let mut bytes = write_head(&format!("{method} {path} HTTP/1.1"), &all).into_bytes();
        bytes.extend_from_slice(body);
        self.send(bytes).await;
    }

    /// Waits for the next response head. Its body is then read by [`Self::piece`].
    pub async fn head(&mut self) -> Answer {
        let (line, headers) = within("a response head", self.wire.head())
            .await
            .expect("a head is well-formed")
            .expect("a response before the end of the connection");
        let status: u16 = line
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .expect("a status");
        self.framing = match status {
            100..200 | 204 | 304 => Framing::Done,
            _ => framing(&headers, Framing::ToEnd),
        };
        Answer {
            status,
            headers,
            body: Vec::new(),
            end: End::Whole,
        }
    }

    /// The next bytes of the body, as they come; how it ended, when nothing more comes.
    pub async fn piece(&mut self) -> Result<Vec<u8>, End> {
        match within("more of the body", self.wire.piece(&mut self.framing)).await {
            Piece::Data(data) => Ok(data),
            Piece::End => Err(End::Whole),
            Piece::Cut => Err(End::Cut),
        }
    }

    /// Waits until exactly this text has arrived next.
    pub async fn expect(&mut self, text: impl AsRef<[u8]>) {
        let (wanted, mut got) = (text.as_ref(), Vec::new());
        while got.len() < wanted.len() {
            let piece = self.piece().await.unwrap_or_else(|end| {
                panic!(
                    "the body ended ({end:?}) after {:?}",
                    String::from_utf8_lossy(&got)
                )
            });
            got.extend_from_slice(&piece);
        }
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(wanted)
        );
    }

    /// The rest of the body and its end.
    pub async fn rest(&mut self) -> (Vec<u8>, End) {
        let mut body = Vec::new();
        loop {
            match self.piece().await {
                Ok(piece) => body.extend_from_slice(&piece),
                Err(end) => return (body, end),
            }
        }
    }

    /// Waits for the next response as a whole.
    pub async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        (answer.body, answer.end) = self.rest().await;
        answer
    }

    /// Waits until the router closes the connection.
    pub async fn closed(&mut self) {
        let end = within("the router closes the connection", self.wire.head()).await;
        assert!(matches!(end, Ok(None)), "{end:?}");
    }
}
