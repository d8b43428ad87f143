//! The prompt of a request as a sequence of byte slices; it is never built as one string on the request path.
//!
//! The text is what prefix matching hashes: chat messages in ChatML, a completion's prompt as it is. The same text
//! gives the same bytes whatever the escapes, key order or white space of the JSON around it.

mod chat;
mod ids;

use crate::request::Api;
use crate::request::value::{Text, Value, code_points};
use std::ops::ControlFlow;

/// The rendered prompt of one request, borrowed from its body.
#[derive(Clone, Debug, Default)]
pub struct Prompt<'a>(Shape<'a>);

/// The top-level members of a body that a prompt may be in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) prompt: Option<Value<'a>>,
    pub(crate) messages: Option<Value<'a>>,
    pub(crate) system: Option<Value<'a>>,
    pub(crate) input: Option<Value<'a>>,
    pub(crate) instructions: Option<Value<'a>>,
}

#[derive(Clone, Debug, Default)]
enum Shape<'a> {
    #[default]
    Empty,
    /// As it is.
    Plain(&'a str),
    /// A string of the body.
    Text(Text<'a>),
    /// A list of token ids.
    Ids(Value<'a>),
    /// Chat messages after a system text.
    Chat {
        system: Option<Value<'a>>,
        messages: Option<Value<'a>>,
    },
    /// Items after instructions.
    Responses {
        instructions: Option<Value<'a>>,
        input: Option<Value<'a>>,
    },
}

impl<'a> Shape<'a> {
    fn new(api: Api, fields: Fields<'a>) -> Self {
        let Fields {
            prompt,
            messages,
            system,
            input,
            instructions,
        } = fields;
        match api {
            Api::Chat | Api::Messages => Self::Chat { system, messages },
            Api::Completions => Self::completion(prompt),
            Api::Responses => Self::Responses {
                instructions,
                input,
            },
            Api::Other(_) => match (Self::completion(prompt), messages) {
                (Self::Empty, Some(messages)) if messages.is_array() => Self::Chat {
                    system,
                    messages: Some(messages),
                },
                (Self::Empty, _) => Self::Responses {
                    instructions,
                    input,
                },
                (prompt, _) => prompt,
            },
        }
    }

    /// Visits all pieces in order; a list of ids has none.
    fn visit(&self, visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match *self {
            Self::Empty | Self::Ids(_) => ControlFlow::Continue(()),
            Self::Plain(text) => visit(Piece::Mark(text)),
            Self::Text(text) => visit(Piece::Text(text)),
            Self::Chat { system, messages } => chat::messages(system, messages, visit),
            Self::Responses {
                instructions,
                input,
            } => chat::items(instructions, input, visit),
        }
    }

    /// A completion's prompt: a string, token ids, or a list of either, of which the first is taken.
    fn completion(prompt: Option<Value<'a>>) -> Self {
        let mut value = prompt;
        while let Some(list) = value.filter(|v| v.is_array()) {
            value = list.elements().next();
            if value.is_some_and(|first| first.number().is_some()) {
                return Self::Ids(list);
            }
        }
        value.and_then(Value::text).map_or(Self::Empty, Self::Text)
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
    /// The prompt of a request to this API with these members.
    pub(crate) fn new(api: Api, fields: Fields<'a>) -> Self {
        Self(Shape::new(api, fields))
    }

    /// A prompt that is this text as it is.
    #[must_use]
    pub fn from_text(text: &'a str) -> Self {
        Self(Shape::Plain(text))
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
        let _ = match self.0 {
            Shape::Ids(list) => ids::pieces(list, &mut sink),
            _ => self.0.visit(&mut |piece| match piece {
                Piece::Mark(mark) => sink(mark.as_bytes()),
                Piece::Text(text) => text.pieces(&mut sink),
            }),
        };
    }

    /// Unicode scalar values of the rendered prompt; a lone surrogate counts as one, and a token id as four, so that a
    /// quarter of this figure estimates the tokens of text and is exact for ids.
    #[must_use]
    pub fn characters(&self) -> u64 {
        if let Shape::Ids(list) = self.0 {
            return 4 * ids::count(list);
        }
        let mut count = 0;
        let _ = self.0.visit(&mut |piece| {
            count += match piece {
                Piece::Mark(mark) => code_points(mark.as_bytes()),
                Piece::Text(text) => text.characters(),
            };
            ControlFlow::Continue(())
        });
        count
    }

    /// Whether there is nothing to match or to estimate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut empty = true;
        self.walk(|_| {
            empty = false;
            ControlFlow::Break(())
        });
        empty
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
