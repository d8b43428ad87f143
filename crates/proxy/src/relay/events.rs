//! The event stream seen from the side: finds the data of each event, however the bytes are cut.
//!
//! Lines end with LF, CRLF or CR; one space after the colon is optional; several `data` lines of one event belong
//! together, joined by LF (WHATWG HTML, "server-sent events", section 9.2.6). The bytes themselves pass untouched.

use memchr::memchr2;

/// Longest event that is looked at, in bytes. A longer one passes unseen, its end alone is told; those of text are below
/// 100 KiB even with log-probabilities.
pub(super) const MAX_EVENT: usize = 1 << 20;

/// A block of lines that a blank line completes.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The data; none of an event that is too long to be looked at, and of comments alone.
    pub data: &'a [u8],
    /// Whether the event's name is `error`.
    pub is_error: bool,
}

/// Gives the data of each event to a callback as soon as its end was seen.
#[derive(Debug, Default)]
pub struct EventScanner {
    /// Start of a line whose end is still to come.
    line: Vec<u8>,
    /// Data of the event so far.
    data: Vec<u8>,
    has_data: bool,
    /// The event's name is `error`.
    is_error: bool,
    /// The event is too long to be looked at.
    too_long: bool,
    /// The line under way has begun with bytes that were not kept.
    line_cut: bool,
    /// The last byte was CR: an LF at the start of the next piece belongs to it.
    after_cr: bool,
}

impl EventScanner {
    /// Takes the next bytes. Calls `on_block` for each block of lines that a blank line completes, with the offset in
    /// `bytes` right behind it.
    pub fn push(&mut self, bytes: &[u8], mut on_block: impl FnMut(Block<'_>, usize)) {
        let mut at = self.skip_lf(bytes);
        while let Some(length) = memchr2(b'\n', b'\r', &bytes[at..]) {
            let end = at + length;
            let mut next = end + 1;
            if bytes[end] == b'\r' {
                match bytes.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if self.line.is_empty() && !self.line_cut {
                self.take_line(&bytes[at..end], |block| on_block(block, next));
            } else {
                self.grow_line(&bytes[at..end]);
                let mut line = std::mem::take(&mut self.line);
                if !std::mem::take(&mut self.line_cut) {
                    self.take_line(&line, |block| on_block(block, next));
                }
                line.clear();
                self.line = line;
            }
            at = next;
        }
        self.grow_line(&bytes[at..]);
    }

    /// The stream ended. An event that was not closed by a blank line counts, too.
    pub fn finish(&mut self, mut on_block: impl FnMut(Block<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && !self.line_cut {
            self.take_line(&line, &mut on_block);
        }
        self.take_line(b"", &mut on_block);
    }

    /// Length of the line end that was begun in the piece before.
    fn skip_lf(&mut self, bytes: &[u8]) -> usize {
        let skip = self.after_cr && bytes.first() == Some(&b'\n');
        self.after_cr &= bytes.is_empty();
        usize::from(skip)
    }

    pub(super) fn is_after_cr(&self) -> bool {
        self.after_cr
    }

    fn grow_line(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > MAX_EVENT {
            self.too_long = true;
        }
        if self.too_long && !bytes.is_empty() {
            self.line_cut = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn take_line(&mut self, line: &[u8], on_block: impl FnOnce(Block<'_>)) {
        if line.is_empty() {
            on_block(Block {
                data: &self.data,
                is_error: self.is_error,
            });
            self.data.clear();
            (self.has_data, self.is_error, self.too_long) = (false, false, false);
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            self.too_long |= self.data.len() + data.len() > MAX_EVENT;
            if self.too_long {
                self.data.clear();
                return;
            }
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
            self.has_data = true;
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.is_error = name.strip_prefix(b" ").unwrap_or(name) == b"error";
        }
    }
}
