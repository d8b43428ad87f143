//! What a pod does with one request: steps that a test puts together and, where it wants, lets go on one by one.

use crate::message::write_head;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, watch};

/// One step of a script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Write bytes as they are.
    Send(Vec<u8>),
    /// Wait for a gate.
    Wait(watch::Receiver<bool>),
    /// Do what the test says, until it says no more.
    Follow(Arc<Mutex<UnboundedReceiver<Act>>>),
    /// Write pieces without end, and count their bytes.
    Flood(Arc<AtomicUsize>),
    /// Do nothing, until the router hangs up.
    Hang,
    /// Close the connection.
    Fin,
    /// Break the connection.
    Rst,
}

/// What a test tells a pod in the middle of a response.
#[derive(Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Fin,
    Rst,
}

/// What a pod does with one request.
#[derive(Clone, Debug)]
pub struct Script(pub(crate) Vec<Step>);

impl Script {
    /// A complete response with a length. Headers are sent as given.
    #[must_use]
    pub fn reply(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        all.push(("content-length", &length));
        let mut bytes = write_head(&format!("HTTP/1.1 {status} Status"), &all).into_bytes();
        bytes.extend_from_slice(body);
        Self(vec![Step::Send(bytes)])
    }

    /// A complete JSON response.
    #[must_use]
    pub fn json(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self::reply(status, &[("content-type", "application/json")], body)
    }

    /// A complete event stream, each event in a chunk of its own, sent at once.
    #[must_use]
    pub fn events(events: &[&str]) -> Self {
        let mut bytes = head_of(200, &[("content-type", "text/event-stream; charset=utf-8")]);
        events
            .iter()
            .for_each(|e| bytes.extend_from_slice(&chunk(e.as_bytes())));
        bytes.extend_from_slice(&chunk(b""));
        Self(vec![Step::Send(bytes)])
    }

    /// A 200 event stream whose body the test sends piece by piece. Serves one request.
    #[must_use]
    pub fn stream() -> (Self, Stream) {
        Self::follow(200, &[("content-type", "text/event-stream; charset=utf-8")])
    }

    /// A chunked response with this head, whose body the test sends piece by piece. Serves one request.
    #[must_use]
    pub fn follow(status: u16, headers: &[(&str, &str)]) -> (Self, Stream) {
        let (acts, receiver) = unbounded_channel();
        let script = Self(vec![
            Step::Send(head_of(status, headers)),
            Step::Follow(Arc::new(Mutex::new(receiver))),
        ]);
        (script, Stream(acts))
    }

    /// A response without end. Returns the count of its bytes that were written so far.
    #[must_use]
    pub fn endless() -> (Self, Arc<AtomicUsize>) {
        let written = Arc::new(AtomicUsize::new(0));
        let head = write_head("HTTP/1.1 200 OK", &[("content-type", "text/plain")]);
        let script = Self(vec![
            Step::Send(head.into_bytes()),
            Step::Flood(Arc::clone(&written)),
        ]);
        (script, written)
    }

    /// These bytes as they are.
    #[must_use]
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self(vec![Step::Send(bytes.as_ref().to_vec())])
    }

    /// No answer, until the router hangs up.
    #[must_use]
    pub fn hang() -> Self {
        Self(vec![Step::Hang])
    }

    /// The connection is closed without a word.
    #[must_use]
    pub fn cut() -> Self {
        Self(vec![Step::Fin])
    }

    /// The connection is broken without a word.
    #[must_use]
    pub fn reset() -> Self {
        Self(vec![Step::Rst])
    }

    /// And then the connection is closed.
    #[must_use]
    pub fn then_fin(mut self) -> Self {
        self.0.push(Step::Fin);
        self
    }

    /// And then nothing, until the gate is open.
    #[must_use]
    pub fn then_wait(mut self, gate: &Gate) -> Self {
        self.0.push(Step::Wait(gate.0.subscribe()));
        self
    }

    /// And then nothing, until the router hangs up.
    #[must_use]
    pub fn then_hang(mut self) -> Self {
        self.0.push(Step::Hang);
        self
    }

    /// The same, once the gate is open.
    #[must_use]
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.0.insert(0, Step::Wait(gate.0.subscribe()));
        self
    }
}

/// Holds answers back until it is opened.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // The sender is here, so it does not end.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

/// The body of a response under way, in the hands of the test. Dropping it leaves the response without an end.
#[derive(Debug)]
pub struct Stream(UnboundedSender<Act>);

impl Stream {
    /// Sends one chunk.
    pub fn send(&self, piece: impl AsRef<[u8]>) {
        self.act(Act::Send(chunk(piece.as_ref())));
    }

    /// Ends the body in good order.
    pub fn finish(self) {
        self.act(Act::Send(chunk(b"")));
    }

    /// Closes the connection in the middle of the body.
    pub fn fin(self) {
        self.act(Act::Fin);
    }

    /// Breaks the connection in the middle of the body.
    pub fn rst(self) {
        self.act(Act::Rst);
    }

    fn act(&self, act: Act) {
        // The router may have hung up; that is for the test to notice.
        let _ = self.0.send(act);
    }
}

/// The head of a chunked response.
fn head_of(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut all = headers.to_vec();
    all.push(("transfer-encoding", "chunked"));
    write_head(&format!("HTTP/1.1 {status} Status"), &all).into_bytes()
}

/// One chunk; an empty one ends the body.
fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// A chat completion as an engine answers it, with usage 9 + 3.
#[must_use]
pub fn chat_answer() -> String {
    concat!(
        r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":"#,
        r#"{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"#,
        r#""usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#
    )
    .to_owned()
}

/// A content event of a chat stream.
#[must_use]
pub fn event(content: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\
         \"{content}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// The event that brings usage 9 + 3 and nothing else.
#[must_use]
pub fn usage_event() -> String {
    concat!(
        r#"data: {"id":"c","object":"chat.completion.chunk","choices":[],"#,
        r#""usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#,
        "\n\n"
    )
    .to_owned()
}
