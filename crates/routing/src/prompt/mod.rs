//! The prompt of a request as a sequence of byte slices; it is never built as one string on the request path.
//!
//! The text is what prefix matching hashes: chat messages in ChatML, a completion's prompt as it is. The same text
//! gives the same bytes whatever the escapes, key order or white space of the JSON around it.

mod completion;
mod fields;
mod ids;
mod turns;

pub(crate) use fields::Fields;

use crate::request::value::{Text, Value};
use std::ops::ControlFlow;
use turns::Turns;

/// The rendered prompt of one request, borrowed from its body.
#[derive(Clone, Debug, Default)]
pub struct Prompt<'a> {
    shape: Shape<'a>,
    characters: u64,
}

#[derive(Clone, Debug)]
enum Shape<'a> {
    /// As it is.
    Plain(&'a str),
    /// A string of the body.
    Text(Text<'a>),
    /// A list of token ids.
    Ids(Value<'a>),
    /// Chat turns.
    Turns(Turns<'a>),
}

impl Default for Shape<'_> {
    fn default() -> Self {
        Self::Plain("")
    }
}

/// A stretch of the rendered prompt.
enum Piece<'a> {
    /// As it is.
    Mark(&'a str),
    /// Part of the body, perhaps with escapes.
    Text(Text<'a>),
}

impl<'a> Prompt<'a> {
    /// A prompt that is this text as it is.
    #[must_use]
    pub fn from_text(text: &'a str) -> Self {
        Self {
            shape: Shape::Plain(text),
            characters: text.chars().count() as u64,
        }
    }

    /// Gives the rendered prompt to `sink`, slice by slice in order, until it breaks. No slice is empty.
    ///
    /// A lone surrogate escape is its three-byte generalised UTF-8 form, so that different ones differ; a token id is
    /// four bytes, little-endian.
    pub fn walk(&self, mut sink: impl FnMut(&[u8]) -> ControlFlow<()>) {
        let mut sink = |bytes: &[u8]| match bytes {
            [] => ControlFlow::Continue(()),
            bytes => sink(bytes),
        };
        let _ = match &self.shape {
            Shape::Plain(text) => sink(text.as_bytes()),
            Shape::Text(text) => text.pieces(&mut sink),
            Shape::Ids(list) => ids::pieces(*list, &mut sink),
            Shape::Turns(turns) => turns.visit(&mut |piece| match piece {
                Piece::Mark(mark) => sink(mark.as_bytes()),
                Piece::Text(text) => text.pieces(&mut sink),
            }),
        };
    }

    /// Unicode scalar values of the rendered prompt; a lone surrogate counts as one, and a token id as four, so that a
    /// quarter of this figure estimates the tokens of text and is exact for ids.
    #[must_use]
    pub fn characters(&self) -> u64 {
        self.characters
    }

    /// Length of the rendered prompt, in bytes, and what escapes take more than what they stand for. Only the texts are
    /// counted, not what is in them.
    #[must_use]
    pub fn spelled_bytes(&self) -> usize {
        match &self.shape {
            Shape::Plain(text) => text.len(),
            Shape::Text(text) => text.spelled_bytes(),
            // Four bytes an id.
            Shape::Ids(_) => usize::try_from(self.characters).unwrap_or(usize::MAX),
            Shape::Turns(turns) => turns.spelled_bytes(),
        }
    }

    /// Whether there is nothing to match or to estimate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.characters == 0
    }

    /// The rendered prompt as one piece, for tests and tools.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.walk(|piece| {
            out.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        out
    }

    /// The rendered prompt as text, for the debug page; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}
