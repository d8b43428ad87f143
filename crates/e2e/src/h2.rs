//! An HTTP/2 client with prior knowledge.

use crate::{Answer, End, Headers, within};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A connection to the router; carries many requests at once.
#[derive(Debug)]
pub struct H2 {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
}

impl H2 {
    /// Connects to a port of loopback.
    pub async fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (sender, connection) = within(
            "an HTTP/2 connection",
            handshake(TokioExecutor::new(), TokioIo::new(stream)),
        )
        .await
        .expect("the router speaks HTTP/2");
        let driver = tokio::spawn(async {
            let _ = connection.await;
        });
        Self { sender, driver }
    }

    /// Posts a body and waits for the response head.
    pub async fn open(&self, path: &str, body: &str) -> Response<Incoming> {
        let request = Request::post(format!("http://router{path}"))
            .header("content-type", "application/json")
            .body(Full::from(body.to_owned()))
            .unwrap();
        within("a response head", self.sender.clone().send_request(request))
            .await
            .expect("a response")
    }

    /// Posts a body and waits for the whole response.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        let (head, mut incoming) = self.open(path, body).await.into_parts();
        let (body, end) = rest(&mut incoming).await;
        let text = |v: &http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
        Answer {
            status: head.status.as_u16(),
            headers: Headers(
                head.headers
                    .iter()
                    .map(|(n, v)| (n.to_string(), text(v)))
                    .collect(),
            ),
            body,
            end,
        }
    }

    /// Waits until the router has closed the connection.
    pub async fn closed(self) {
        drop(self.sender);
        within("the connection ends", self.driver).await.unwrap();
    }
}

/// The rest of a body and its end. A body may end with a frame without data.
pub async fn rest(incoming: &mut Incoming) -> (Vec<u8>, End) {
    let mut body = Vec::new();
    while let Some(frame) = within("more of the body", incoming.frame()).await {
        match frame {
            Ok(frame) => body.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Err(_) => return (body, End::Cut),
        }
    }
    (body, End::Whole)
}
