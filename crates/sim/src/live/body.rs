//! Response bodies of the server.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    api::{Answer, Generate},
    core::{Progress, Ticket},
    idle::Busy,
};

/// A body: whole, or events as the engine makes them. Holds its connection busy until it is dropped.
#[derive(Debug)]
pub(super) struct Body {
    content: Content,
    pub(super) busy: Option<Busy>,
}

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Events(Box<Events>),
}

/// A stream of server-sent events, one chunk each.
#[derive(Debug)]
pub(super) struct Events {
    answer: Answer,
    receiver: mpsc::UnboundedReceiver<Progress>,
    ready: VecDeque<String>,
    ended: bool,
    /// Dropping the body, as a disconnect does, aborts the request.
    _ticket: Ticket,
}

impl Events {
    pub(super) fn new(
        request: Generate,
        answer: impl FnOnce(Generate) -> Answer,
        receiver: mpsc::UnboundedReceiver<Progress>,
        ticket: Ticket,
    ) -> Self {
        let mut answer = answer(request);
        let mut ready = VecDeque::new();
        answer.open(&mut ready);
        Self {
            answer,
            receiver,
            ready,
            ended: false,
            _ticket: ticket,
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(self.receiver.poll_recv(cx)) {
                Some(progress) => {
                    self.answer.advance(&progress);
                    self.answer.event(&progress, &mut self.ready);
                    if self.answer.complete() {
                        self.answer.close(&mut self.ready);
                        self.ended = true;
                    }
                }
                None => self.ended = true,
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.content {
            Content::Whole(bytes) => bytes.take(),
            Content::Events(events) => ready!(events.poll_next(cx)).map(Bytes::from),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Events(_) => SizeHint::default(),
        }
    }
}

/// A response with the headers of the real server.
pub(super) fn response(
    status: StatusCode,
    content_type: Option<&'static str>,
    bytes: Bytes,
) -> Response<Body> {
    let bytes = (!bytes.is_empty()).then_some(bytes);
    build(status, content_type, Content::Whole(bytes))
}

/// A JSON response.
pub(super) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    response(
        status,
        Some("application/json"),
        Bytes::from(value.to_string()),
    )
}

/// A stream of events.
pub(super) fn events(events: Events) -> Response<Body> {
    build(
        StatusCode::OK,
        Some("text/event-stream; charset=utf-8"),
        Content::Events(Box::new(events)),
    )
}

fn build(
    status: StatusCode,
    content_type: Option<&'static str>,
    content: Content,
) -> Response<Body> {
    let mut response = Response::new(Body {
        content,
        busy: None,
    });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("uvicorn"));
    if let Some(content_type) = content_type {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    response
}
