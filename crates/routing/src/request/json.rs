//! A strict JSON reader (RFC 8259) over bytes: it checks everything, builds nothing and never recurses.
//!
//! A [`Cursor`] reads a document that may be wrong; the [`Value`]s that it gives are known to be right.

use super::scan;
use super::value::{Counted, Text, Value};

/// Where a document stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// In bytes from the start of the body.
    pub(crate) offset: usize,
    /// What should have been there.
    pub(crate) expected: &'static str,
}

/// A place in a document.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The first value of a body. A byte order mark is skipped; the whole body must be UTF-8.
    pub(crate) fn document(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if let Err(e) = simdutf8::compat::from_utf8(bytes) {
            return Err(Malformed {
                offset: e.valid_up_to(),
                expected: "UTF-8",
            });
        }
        let at = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        let mut cursor = Self { bytes, at };
        cursor.skip_space();
        Ok(cursor)
    }

    /// Inside the object or array that `raw` spells.
    pub(super) fn inside(raw: &'a [u8]) -> Self {
        Self { bytes: raw, at: 1 }
    }

    /// Where the cursor is, in bytes from the start of the document.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The value that began at `start` and was read just now.
    pub(crate) fn since(&self, start: usize) -> Value<'a> {
        Value::new(&self.bytes[start..self.at], start)
    }

    /// The byte at the cursor.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Enters the object or array whose bracket is at the cursor.
    pub(crate) fn enter(&mut self) {
        self.at += 1;
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            self.expected("the end of the document")
        }
    }

    /// The next key of the object that the cursor is in, or `None` after its end. `first` says that no key was read
    /// yet. The cursor is then at the key's value.
    pub(crate) fn next_key(&mut self, first: bool) -> Result<Option<Text<'a>>, Malformed> {
        self.skip_space();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
            }
            _ if first => {}
            _ => return self.expected("',' or '}'"),
        }
        if self.peek() != Some(b'"') {
            return self.expected(if first { "a key or '}'" } else { "a key" });
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.expected("':'");
        }
        self.at += 1;
        self.skip_space();
        Ok(Some(key))
    }

    /// Whether the array that the cursor is in has a next element; if so the cursor is at it, otherwise after the
    /// array. `first` says that no element was read yet.
    pub(crate) fn next_element(&mut self, first: bool) -> Result<bool, Malformed> {
        self.skip_space();
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            _ if first => Ok(true),
            _ => self.expected("',' or ']'"),
        }
    }

    /// Reads the value at the cursor, whatever it is and however deep.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Malformed> {
        let start = self.at;
        let mut open = Nesting::default();
        let fresh = self.begin(&mut open)?;
        self.close(open, fresh)?;
        Ok(self.since(start))
    }

    /// Reads on until all open brackets are closed. `fresh` says that nothing inside the innermost was read yet.
    pub(crate) fn close(&mut self, mut open: Nesting, mut fresh: bool) -> Result<(), Malformed> {
        while let Some(object) = open.innermost_is_object() {
            let more = if object {
                self.next_key(fresh)?.is_some()
            } else {
                self.next_element(fresh)?
            };
            fresh = if more {
                self.begin(&mut open)?
            } else {
                open.pop();
                false
            };
        }
        Ok(())
    }

    /// Enters the bracket at the cursor, or else reads a scalar. Says whether there was a bracket.
    fn begin(&mut self, open: &mut Nesting) -> Result<bool, Malformed> {
        let object = match self.peek() {
            Some(b'{') => true,
            Some(b'[') => false,
            _ => return self.scalar().map(|()| false),
        };
        self.enter();
        open.push(object);
        Ok(true)
    }

    fn scalar(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true", "true"),
            Some(b'f') => self.literal(b"false", "false"),
            Some(b'n') => self.literal(b"null", "null"),
            _ => self.expected("a value"),
        }
    }

    fn string(&mut self) -> Result<Text<'a>, Malformed> {
        let start = self.at + 1;
        let string = scan::string::<false>(self.bytes, start)?;
        self.at = string.end + 1;
        Ok(Text::new(&self.bytes[start..string.end]))
    }

    /// Reads the value at the cursor, which is only kept when it is a string.
    pub(crate) fn counted(&mut self) -> Result<Option<Counted<'a>>, Malformed> {
        if self.peek() != Some(b'"') {
            return self.value().map(|_| None);
        }
        let start = self.at + 1;
        let string = scan::string::<true>(self.bytes, start)?;
        self.at = string.end + 1;
        Ok(Some(Counted {
            text: Text::new(&self.bytes[start..string.end]),
            characters: string.characters,
        }))
    }

    fn literal(&mut self, bytes: &[u8], expected: &'static str) -> Result<(), Malformed> {
        if self.bytes[self.at..].starts_with(bytes) {
            self.at += bytes.len();
            Ok(())
        } else {
            self.expected(expected)
        }
    }

    fn number(&mut self) -> Result<(), Malformed> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            self.expected("a digit")
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, Malformed> {
        Err(Malformed {
            offset: self.at,
            expected,
        })
    }
}

/// Which of the open brackets are objects, one bit per level, so that depth costs next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    depth: usize,
    /// The innermost levels, up to 64; bit 0 is the innermost.
    word: u64,
    /// The full words further out.
    outer: Vec<u64>,
}

impl Nesting {
    pub(crate) fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.word);
        }
        self.word = self.word << 1 | u64::from(object);
        self.depth += 1;
    }

    pub(crate) fn pop(&mut self) {
        self.depth -= 1;
        self.word >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.word = self.outer.pop().unwrap_or_default();
        }
    }

    pub(crate) fn innermost_is_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.word & 1 == 1)
    }
}
