//! Looks at a response body as it passes, and takes out the usage event that only the router asked for.

use super::events::{EventScanner, MAX_EVENT};
use super::facts::{Facts, is_usage_only};
use super::json::JsonWatch;
use bytes::{Bytes, BytesMut};

/// What to look for in a body.
#[derive(Debug)]
pub enum Watch {
    /// A server-sent event stream.
    Events(EventWatch),
    /// One JSON document.
    Json(JsonWatch),
    /// Neither: passes unseen.
    Opaque,
}

impl Watch {
    /// By the response's content type, of a body without a content coding. `hide_usage`: the usage event is the router's
    /// own wish.
    #[must_use]
    pub fn new(content_type: &[u8], hide_usage: bool) -> Self {
        let kind = content_type
            .split(|&b| b == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        if kind.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events(EventWatch {
                hide_usage,
                ..EventWatch::default()
            })
        } else if kind.eq_ignore_ascii_case(b"application/json") {
            Self::Json(JsonWatch::default())
        } else {
            Self::Opaque
        }
    }

    /// Whether some of the body may be kept from the client.
    #[must_use]
    pub fn hides(&self) -> bool {
        matches!(self, Self::Events(events) if events.hide_usage)
    }

    /// The body ends with its connection: whether it came to its own end is to be told by what it says. False where that
    /// cannot be told.
    pub(super) fn tells_its_end(&mut self) -> bool {
        match self {
            Self::Events(_) => true,
            Self::Json(json) => {
                json.match_brackets();
                true
            }
            Self::Opaque => false,
        }
    }

    /// Takes a piece of the body and returns what of it the client gets.
    pub fn push(&mut self, piece: Bytes) -> Bytes {
        match self {
            Self::Events(events) => events.push(piece),
            Self::Json(json) => {
                json.look(&piece);
                piece
            }
            Self::Opaque => piece,
        }
    }

    /// Whether the event that ends a stream in good order has passed: what is still to come says nothing new.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Events(events) if events.facts.complete)
    }

    /// The body ended in good order. Returns what was held back, and what was learnt.
    pub fn finish(&mut self) -> (Bytes, Facts) {
        match self {
            Self::Events(events) => events.finish(),
            Self::Json(json) => (Bytes::new(), json.finish()),
            Self::Opaque => (Bytes::new(), Facts::default()),
        }
    }
}

/// Watches an event stream.
#[derive(Debug, Default)]
pub struct EventWatch {
    scanner: EventScanner,
    facts: Facts,
    hide_usage: bool,
    /// Start of an event whose end is still to come, held until it is known not to be the usage event.
    held: BytesMut,
    /// Some of that event has already passed, since it is longer than what is held. The rest follows, whatever it is.
    begun: bool,
    /// The last piece ended with an event that was taken out; if its line end is cut in two, the rest goes too.
    just_hidden: bool,
}

impl EventWatch {
    fn push(&mut self, piece: Bytes) -> Bytes {
        if !self.hide_usage {
            let facts = &mut self.facts;
            self.scanner
                .push(&piece, |block, _| facts.read_event(block));
            return piece;
        }
        if piece.is_empty() {
            return piece;
        }
        // An LF that completes the line end of an event before goes where that event went.
        let line_end =
            self.held.is_empty() && self.scanner.is_after_cr() && piece.first() == Some(&b'\n');
        let mut visible = Visible::new(&piece, &mut self.held);
        match (line_end, self.just_hidden) {
            (true, true) => visible.hide_to(1),
            (true, false) => visible.show_to(1),
            (false, _) => {}
        }
        let (facts, begun) = (&mut self.facts, &mut self.begun);
        let mut hidden_to = None;
        self.scanner.push(&piece, |block, end| {
            facts.read_event(block);
            if !std::mem::take(begun) && is_usage_only(block.data) {
                visible.hide_to(end);
                hidden_to = Some(end);
            } else {
                visible.show_to(end);
            }
        });
        self.just_hidden = hidden_to == Some(piece.len());
        self.begun |= visible.is_too_long();
        visible.finish(self.begun)
    }

    fn finish(&mut self) -> (Bytes, Facts) {
        let facts = &mut self.facts;
        let mut hide = false;
        self.scanner.finish(|block| {
            facts.read_event(block);
            hide = !self.begun && is_usage_only(block.data);
        });
        let held = self.held.split().freeze();
        (if hide { Bytes::new() } else { held }, *facts)
    }
}

/// The part of a piece that goes on: the piece itself where nothing is hidden or held, a copy only where it must be.
struct Visible<'a> {
    piece: &'a Bytes,
    held: &'a mut BytesMut,
    /// Set once the result is no longer a prefix of the piece.
    copy: Option<BytesMut>,
    /// Events up to here are decided.
    done: usize,
}

impl<'a> Visible<'a> {
    fn new(piece: &'a Bytes, held: &'a mut BytesMut) -> Self {
        Self {
            piece,
            held,
            copy: None,
            done: 0,
        }
    }

    fn show_to(&mut self, end: usize) {
        if !self.held.is_empty() {
            let held = self.held.split();
            self.copied().extend_from_slice(&held);
        }
        let part = &self.piece[self.done..end];
        if let Some(copy) = &mut self.copy {
            copy.extend_from_slice(part);
        }
        self.done = end;
    }

    fn hide_to(&mut self, end: usize) {
        self.held.clear();
        self.copied();
        self.done = end;
    }

    fn copied(&mut self) -> &mut BytesMut {
        let (piece, done) = (self.piece, self.done);
        self.copy
            .get_or_insert_with(|| BytesMut::from(&piece[..done]))
    }

    /// Whether the event under way is longer than what is held.
    fn is_too_long(&self) -> bool {
        self.held.len() + self.piece.len() - self.done > MAX_EVENT
    }

    /// What is undecided is shown or held.
    fn finish(mut self, show: bool) -> Bytes {
        if show {
            self.show_to(self.piece.len());
        } else {
            self.held.extend_from_slice(&self.piece[self.done..]);
        }
        match self.copy {
            Some(copy) => copy.freeze(),
            None => self.piece.slice(..self.done),
        }
    }
}

#[cfg(test)]
mod tests;
