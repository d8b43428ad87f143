//! A request body that can be sent again: shared pieces, no copy.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use routing::request::Edits;
use smallvec::SmallVec;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Pieces of a request body in order. Cloning it shares the bytes, so that each attempt sends the same ones.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pieces: SmallVec<[Bytes; 5]>,
    next: usize,
    left: u64,
}

impl Payload {
    /// A body of one piece.
    #[must_use]
    pub fn whole(bytes: Bytes) -> Self {
        let mut payload = Self::default();
        payload.push(bytes);
        payload
    }

    /// A body with its edits, as pieces of the original bytes.
    #[must_use]
    pub fn edited(body: &Bytes, edits: Edits) -> Self {
        let mut payload = Self::default();
        let mut kept = 0;
        for edit in edits {
            payload.push(body.slice(kept..edit.range.start));
            payload.push(Bytes::from(edit.replacement));
            kept = edit.range.end;
        }
        payload.push(body.slice(kept..));
        payload
    }

    /// Adds a piece; empty ones are left out.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.left += piece.len() as u64;
            self.pieces.push(piece);
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.left
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(piece) = self.pieces.get(self.next).cloned() else {
            return Poll::Ready(None);
        };
        self.next += 1;
        self.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
