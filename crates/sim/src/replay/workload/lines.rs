//! A file of JSON lines.

use super::TraceError;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::HashMap;
use std::io::BufRead;

/// What a gzip archive begins with (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What some editors write before UTF-8 text.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Lines that are not blank, one after the other.
pub(super) struct Lines<R> {
    from: R,
    /// The number of the line in `text`, from 1.
    number: usize,
    text: Vec<u8>,
    /// The line in `text` was looked at and is still to be read.
    kept: bool,
    cut: Vec<usize>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self {
            from,
            number: 0,
            text: Vec::new(),
            kept: false,
            cut: Vec::new(),
        }
    }

    /// The lines that end in the middle.
    pub(super) fn cut(self) -> Vec<usize> {
        self.cut
    }

    /// Whether the first line is an object with this member. It is read again afterwards.
    pub(super) fn starts_with_member(&mut self, name: &str) -> Result<bool, TraceError> {
        self.kept = self.advance()?;
        let members: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_slice(&self.text);
        Ok(members.is_ok_and(|members| members.contains_key(name)))
    }

    /// Calls `each` with every line.
    pub(super) fn read<T: DeserializeOwned>(
        &mut self,
        mut each: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), TraceError> {
        while std::mem::take(&mut self.kept) || self.advance()? {
            let line = self.number;
            // Without the line end, which would be taken for a part of a string that is cut.
            match serde_json::from_slice(self.text.trim_ascii_end()) {
                Ok(value) => each(value).map_err(|why| TraceError::Line { line, why })?,
                Err(error) if error.is_eof() => self.cut.push(line),
                Err(error) => {
                    let why = told(&error);
                    return Err(TraceError::Line { line, why });
                }
            }
        }
        Ok(())
    }

    /// Goes to the next line that is not blank; `false` if there is none.
    fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            self.text.clear();
            self.number += 1;
            let line = self.number;
            let read = self.from.read_until(b'\n', &mut self.text);
            if read.map_err(|source| TraceError::Read { line, source })? == 0 {
                return Ok(false);
            }
            if line == 1 && self.text.starts_with(&GZIP) {
                return Err(TraceError::Compressed);
            }
            if line == 1 && self.text.starts_with(&BYTE_ORDER_MARK) {
                self.text.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}

/// What is wrong with a line, and at which of its bytes. The parser's own text calls each line the first one.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what} (column {})", error.column()),
        None => text,
    }
}
