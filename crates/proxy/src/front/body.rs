//! The body of a response to a client: bytes that are at hand, or a relay.

use crate::relay::RelayBody;
use crate::upstream::BodyError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response body.
#[derive(Debug)]
pub struct ClientBody(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Option<Bytes>),
    Relay(Box<RelayBody>),
}

impl ClientBody {
    pub(crate) fn relay(body: RelayBody) -> Self {
        Self(Kind::Relay(Box::new(body)))
    }
}

impl From<Bytes> for ClientBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole(Some(bytes).filter(|b| !b.is_empty())))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Kind::Relay(relay) => Pin::new(relay.as_mut()).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Relay(relay) => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Kind::Relay(relay) => relay.size_hint(),
        }
    }
}
