//! Replacing a few bytes of a body and keeping all others.

use super::value::Value;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes that take the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What goes, in bytes of the body; empty for an insertion.
    pub range: Range<usize>,
    /// What comes instead.
    pub replacement: Box<[u8]>,
}

/// Edits of one body, in order and without overlap.
pub type Edits = SmallVec<[Edit; 2]>;

/// The body after the edits, which are in order and do not overlap.
///
/// # Panics
/// A range is outside the body or before the one of the edit before it.
#[must_use]
pub fn apply(body: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out =
        Vec::with_capacity(body.len() + edits.iter().map(|e| e.replacement.len()).sum::<usize>());
    let mut kept = 0;
    for edit in edits {
        out.extend_from_slice(&body[kept..edit.range.start]);
        out.extend_from_slice(&edit.replacement);
        kept = edit.range.end;
    }
    out.extend_from_slice(&body[kept..]);
    out
}

/// Both edits of one body, in order; where two insertions meet, the first comes first. They must not overlap.
#[must_use]
pub fn merge(first: &[Edit], second: Edits) -> Edits {
    let mut all: Edits = first.iter().cloned().chain(second).collect();
    all.sort_by_key(|edit| edit.range.start);
    all
}

/// Where the body can be edited.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    model: Range<usize>,
    encoding: Encoding,
    usage: Usage,
}

/// How a replacement of the model's name is spelled.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Json,
    Raw,
}

/// What it takes to make `stream_options.include_usage` true.
#[derive(Clone, Debug)]
enum Usage {
    /// It is true already.
    Asked,
    /// There is no place for it.
    Impossible,
    /// Put this text in place of this range.
    Edit(Range<usize>, &'static str),
}

impl Spot {
    /// `model` is the value to replace, `last` the end of the object's last member.
    pub(super) fn json(model: Value<'_>, stream_options: Option<Value<'_>>, last: usize) -> Self {
        Self {
            model: model.range(),
            encoding: Encoding::Json,
            usage: Usage::of(stream_options, last),
        }
    }

    /// `model` is the content of a form field.
    pub(super) fn form(model: Range<usize>) -> Self {
        Self {
            model,
            encoding: Encoding::Raw,
            usage: Usage::Impossible,
        }
    }

    pub(super) fn wants_usage(&self) -> bool {
        matches!(self.usage, Usage::Asked)
    }

    pub(super) fn edits(&self, model: Option<&str>, usage: bool) -> Edits {
        let mut edits = Edits::new();
        if let Some(name) = model {
            let replacement = match self.encoding {
                Encoding::Json => quoted(name).into(),
                Encoding::Raw => name.as_bytes().into(),
            };
            edits.push(Edit {
                range: self.model.clone(),
                replacement,
            });
        }
        if let (true, Usage::Edit(range, text)) = (usage, &self.usage) {
            edits.push(Edit {
                range: range.clone(),
                replacement: text.as_bytes().into(),
            });
        }
        edits.sort_by_key(|edit| edit.range.start);
        edits
    }
}

impl Usage {
    fn of(stream_options: Option<Value<'_>>, last: usize) -> Self {
        let Some(options) = stream_options else {
            return Self::Edit(last..last, r#","stream_options":{"include_usage":true}"#);
        };
        if options.is_null() {
            return Self::Edit(options.range(), r#"{"include_usage":true}"#);
        }
        if !options.is_object() {
            return Self::Impossible;
        }
        let (mut end, mut include) = (None, None);
        for (key, value) in options.members() {
            end = Some(value.range().end);
            if key.is("include_usage") {
                include = Some(value);
            }
        }
        match (include, end) {
            (Some(value), _) if value.is_true() => Self::Asked,
            (Some(value), _) => Self::Edit(value.range(), "true"),
            (None, Some(end)) => Self::Edit(end..end, r#","include_usage":true"#),
            (None, None) => {
                let inside = options.range().start + 1;
                Self::Edit(inside..inside, r#""include_usage":true"#)
            }
        }
    }
}

/// A JSON string.
fn quoted(text: &str) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}
