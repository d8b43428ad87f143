//! Pieces of a document that was checked: raw bytes, decoded only where someone looks.

use super::escape::{self, Escape};
use super::json::Cursor;
use super::scan::Hits;
use memchr::memchr;
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

/// A value inside a document that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    raw: &'a [u8],
    at: usize,
}

impl<'a> Value<'a> {
    /// `raw` is a whole value; `at` is where it begins in the document, in bytes.
    pub(super) fn new(raw: &'a [u8], at: usize) -> Self {
        Self { raw, at }
    }

    /// The bytes of the document that spell it.
    pub(crate) fn range(self) -> Range<usize> {
        self.at..self.at + self.raw.len()
    }

    /// The content of a string.
    pub(crate) fn text(self) -> Option<Text<'a>> {
        match self.raw {
            [b'"', raw @ .., b'"'] => Some(Text { raw }),
            _ => None,
        }
    }

    /// The spelling of a number.
    pub(crate) fn number(self) -> Option<&'a [u8]> {
        matches!(self.raw.first(), Some(b'-' | b'0'..=b'9')).then_some(self.raw)
    }

    /// A number, also one that is spelled as a string, as lenient schemas take it. For comparisons only: large numbers
    /// lose their last digits.
    pub(crate) fn as_number(self) -> Option<f64> {
        let number = |raw: &[u8]| std::str::from_utf8(raw).ok()?.trim().parse().ok();
        match self.text() {
            Some(text) => number(&text.decoded()),
            None => number(self.number()?),
        }
    }

    pub(crate) fn is_null(self) -> bool {
        self.raw == b"null"
    }

    pub(crate) fn is_true(self) -> bool {
        self.raw == b"true"
    }

    pub(crate) fn is_array(self) -> bool {
        self.raw.first() == Some(&b'[')
    }

    pub(crate) fn is_object(self) -> bool {
        self.raw.first() == Some(&b'{')
    }

    /// The members of an object, in order, duplicates included; none for other values.
    pub(crate) fn members(self) -> impl Iterator<Item = (Text<'a>, Value<'a>)> {
        let mut cursor = self.is_object().then_some(Cursor::inside(self.raw));
        let mut first = true;
        std::iter::from_fn(move || {
            let cursor = cursor.as_mut()?;
            let key = cursor.next_key(std::mem::take(&mut first)).ok()??;
            let value = cursor.value().ok()?;
            Some((key, Value::new(value.raw, self.at + value.at)))
        })
    }

    /// The elements of an array, in order; none for other values.
    pub(crate) fn elements(self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = self.is_array().then(|| Cursor::inside(self.raw));
        let mut first = true;
        std::iter::from_fn(move || {
            let cursor = cursor.as_mut()?;
            let more = cursor.next_element(std::mem::take(&mut first)).ok()?;
            if more { cursor.value().ok() } else { None }
        })
    }
}

/// The content of a string as the document spells it, without the quotes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
}

/// The content of a string and how many characters its text has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted<'a> {
    pub(crate) text: Text<'a>,
    /// Unicode scalar values; a lone surrogate counts as one.
    pub(crate) characters: u64,
}

impl<'a> Text<'a> {
    /// `raw` is what stands between two quotes.
    pub(super) fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// A text of our own, which must not hold a backslash.
    pub(crate) const fn plain(text: &'static str) -> Self {
        Self {
            raw: text.as_bytes(),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Its length as the document spells it.
    pub(crate) fn spelled_bytes(self) -> usize {
        self.raw.len()
    }

    /// Whether the decoded text is this one.
    pub(crate) fn is(self, text: &str) -> bool {
        *self.decoded() == *text.as_bytes()
    }

    /// The decoded text; a lone surrogate is its three-byte generalised UTF-8 form (WTF-8).
    pub(crate) fn decoded(self) -> Cow<'a, [u8]> {
        if memchr(b'\\', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        let mut out = Vec::with_capacity(self.raw.len());
        let _ = self.pieces(&mut |piece| {
            out.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        Cow::Owned(out)
    }

    /// The decoded text piece by piece: long stretches without an escape are borrowed, escapes and what stands between
    /// them are gathered. A piece may be empty.
    pub(crate) fn pieces(self, sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut hits = Hits::from(self.raw, 0);
        let mut next = hits.next();
        if next.is_none() {
            return sink(self.raw);
        }
        let mut rest = 0;
        let mut gathered = Gathered::default();
        loop {
            let end = next.unwrap_or(self.raw.len());
            gathered.stretch(self.raw, rest..end, sink)?;
            if next.is_none() {
                return gathered.flush(sink);
            }
            let (escape, used) = escape::decode(&self.raw[end..]);
            gathered.escape(escape);
            rest = end + used;
            hits.skip_to(rest);
            next = hits.next();
        }
    }
}

/// Stretches up to this length are gathered, and copied as if they had it: a copy of fixed length is some instructions
/// in place of a call.
const SHORT: usize = 64;

/// Bytes that are gathered before they are given on: a few blocks of a prompt.
const GATHER: usize = 8 * SHORT;

/// Short pieces on their way to one that is worth its call. Source code and lists have an escape every few dozen bytes.
#[derive(Debug)]
struct Gathered {
    bytes: [u8; GATHER],
    len: usize,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            bytes: [0; GATHER],
            len: 0,
        }
    }
}

impl Gathered {
    /// Takes what stands between two escapes, and sees to it that the text of an escape has room behind it.
    #[inline]
    fn stretch(
        &mut self,
        raw: &[u8],
        range: Range<usize>,
        sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let len = range.len();
        if self.len + len.max(SHORT) + size_of::<Escape>() > GATHER {
            self.flush(sink)?;
        }
        if len > SHORT {
            self.flush(sink)?;
            return sink(&raw[range]);
        }
        let free = &mut self.bytes[self.len..];
        match (
            raw[range.start..].first_chunk::<SHORT>(),
            free.first_chunk_mut::<SHORT>(),
        ) {
            (Some(from), Some(to)) => *to = *from,
            _ => copy_last(&raw[range], free),
        }
        self.len += len;
        ControlFlow::Continue(())
    }

    /// Takes the text of an escape.
    #[inline]
    fn escape(&mut self, escape: Escape) {
        let (bytes, len) = escape.padded();
        if let Some(free) = self.bytes[self.len..].first_chunk_mut() {
            *free = bytes;
            self.len += len;
        }
    }

    #[inline(never)]
    fn flush(&mut self, sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>) -> ControlFlow<()> {
        sink(&self.bytes[..std::mem::take(&mut self.len)])
    }
}

/// Copies what stands too near to the end of its text for a copy of fixed length.
#[cold]
#[inline(never)]
fn copy_last(from: &[u8], to: &mut [u8]) {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
}
