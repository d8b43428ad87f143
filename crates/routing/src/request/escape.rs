//! The escapes of JSON strings: checked while a body is read, decoded where someone looks.

use super::json::Malformed;

/// The text of one escape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Escape {
    bytes: [u8; 4],
    len: usize,
}

impl Escape {
    fn byte(byte: u8) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            len: 1,
        }
    }

    /// Generalised UTF-8: a surrogate is encoded like any other code point of three bytes.
    fn code_point(code: u32) -> Self {
        let mut bytes = [0; 4];
        let len = match char::from_u32(code) {
            Some(c) => c.encode_utf8(&mut bytes).len(),
            None => {
                bytes[0] = 0xe0 | (code >> 12) as u8;
                bytes[1] = 0x80 | (code >> 6 & 0x3f) as u8;
                bytes[2] = 0x80 | (code & 0x3f) as u8;
                3
            }
        };
        Self { bytes, len }
    }

    /// The text, filled up with zeros, and its length.
    pub(super) fn padded(&self) -> ([u8; 4], usize) {
        (self.bytes, self.len)
    }
}

/// Checks the escape whose backslash is at `at`: how many bytes spell it. Two escapes that form a surrogate pair count
/// as one.
#[inline]
pub(super) fn check(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match bytes.get(at + 1) {
        Some(&letter) if SIMPLE[usize::from(letter)] != 0 => Ok(2),
        letter => check_unicode(bytes, at, letter),
    }
}

fn check_unicode(bytes: &[u8], at: usize, letter: Option<&u8>) -> Result<usize, Malformed> {
    if letter != Some(&b'u') {
        return Err(Malformed {
            offset: at + 1,
            expected: "an escape",
        });
    }
    match unicode(bytes, at) {
        Some((_, len)) => Ok(len),
        None => Err(Malformed {
            offset: (at + 2..)
                .find(|&i| !bytes.get(i).is_some_and(u8::is_ascii_hexdigit))
                .unwrap_or(at),
            expected: "four hexadecimal digits",
        }),
    }
}

/// Decodes the escape, which was checked, at the start of `raw`: its text and how many bytes spell it.
#[inline]
pub(super) fn decode(raw: &[u8]) -> (Escape, usize) {
    match raw.get(1).map(|&letter| SIMPLE[usize::from(letter)]) {
        Some(byte) if byte != 0 => (Escape::byte(byte), 2),
        _ => decode_unicode(raw),
    }
}

fn decode_unicode(raw: &[u8]) -> (Escape, usize) {
    let (code, len) = unicode(raw, 0).unwrap_or((0, raw.len()));
    (Escape::code_point(code), len)
}

/// The code point of a `\u` escape at `at`, or of the surrogate pair that begins there, and how many bytes spell it.
#[inline]
fn unicode(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = hex(bytes, at + 2)?;
    if (0xd800..0xdc00).contains(&first) && bytes.get(at + 6..at + 8) == Some(b"\\u") {
        let second = hex(bytes, at + 8).filter(|second| (0xdc00..0xe000).contains(second));
        if let Some(second) = second {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some((code, 12));
        }
    }
    Some((first, 6))
}

/// The number that four hexadecimal digits at `at` spell.
#[inline]
fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    let [a, b, c, d] = digits.map(|digit| DIGITS[usize::from(digit)]);
    // What is no digit has its high bits set.
    (a | b | c | d < 16)
        .then(|| u32::from(a) << 12 | u32::from(b) << 8 | u32::from(c) << 4 | u32::from(d))
}

/// What the letter after a backslash stands for; 0 for those that make no escape of two bytes.
const SIMPLE: [u8; 256] = {
    let mut bytes = [0; 256];
    bytes[b'"' as usize] = b'"';
    bytes[b'\\' as usize] = b'\\';
    bytes[b'/' as usize] = b'/';
    bytes[b'b' as usize] = 0x08;
    bytes[b'f' as usize] = 0x0c;
    bytes[b'n' as usize] = b'\n';
    bytes[b'r' as usize] = b'\r';
    bytes[b't' as usize] = b'\t';
    bytes
};

/// The value of each hexadecimal digit; 255 for all other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};
