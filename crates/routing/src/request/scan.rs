//! Finding the end of a JSON string, the one loop that sees nearly every byte of a request.
//!
//! A block of 64 bytes becomes one 64-bit mask of the bytes that need a look (quote, backslash, control character);
//! everything else is skipped without a branch per byte.

use super::json::Malformed;

/// Bytes per mask.
const BLOCK: usize = 64;

/// The places in `bytes` that need a look, in order.
#[derive(Debug)]
pub(super) struct Hits<'a> {
    bytes: &'a [u8],
    /// Where the block of `mask` begins.
    block: usize,
    /// The hits of the block that were not given yet.
    mask: u64,
}

impl<'a> Hits<'a> {
    /// The hits at `start` or later.
    pub(super) fn from(bytes: &'a [u8], start: usize) -> Self {
        let mask = if start < bytes.len() {
            block_mask(bytes, start)
        } else {
            0
        };
        Self {
            bytes,
            block: start,
            mask,
        }
    }

    /// The next hit.
    #[inline]
    pub(super) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            if self.bytes.len() - self.block <= BLOCK {
                return None;
            }
            self.block += BLOCK;
            self.mask = block_mask(self.bytes, self.block);
        }
        let hit = self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(self.block + hit)
    }

    /// Passes over the hits before `next`, which is behind the last hit.
    #[inline]
    pub(super) fn skip_to(&mut self, next: usize) {
        if next - self.block < BLOCK {
            self.mask &= u64::MAX << (next - self.block);
        } else {
            *self = Self::from(self.bytes, next);
        }
    }
}

/// A string that was read to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanned {
    /// The index of the closing quote.
    pub(super) end: usize,
    /// Unicode scalar values of the decoded text, in which a lone surrogate counts as one; 0 when they were not asked for.
    pub(super) characters: u64,
}

/// Finds the end of the string whose content begins at `start`, and on the way counts its characters if `COUNT` is set.
///
/// The content is checked: no control characters, every escape is one that RFC 8259 knows. UTF-8 is checked elsewhere.
pub(super) fn string<const COUNT: bool>(bytes: &[u8], start: usize) -> Result<Scanned, Malformed> {
    let mut at = start;
    let mut starts = 0;
    // Bytes that spell an escape beyond the one character that they stand for.
    let mut excess = 0;
    while at < bytes.len() {
        let padded;
        let block = match bytes[at..].first_chunk::<BLOCK>() {
            Some(block) => block,
            None => {
                padded = pad(&bytes[at..]);
                &padded
            }
        };
        let mut next = at + BLOCK;
        let mut mask = specials(block);
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            let hit = at + lane;
            match block[lane] {
                b'"' => {
                    let characters = if COUNT {
                        starts + starts_before(block, lane) - excess
                    } else {
                        0
                    };
                    return Ok(Scanned {
                        end: hit,
                        characters,
                    });
                }
                b'\\' => {
                    let len = escape_len(bytes, hit)?;
                    excess += len as u64 - 1;
                    mask &= u64::MAX.checked_shl((lane + len) as u32).unwrap_or(0);
                    next = next.max(hit + len);
                }
                _ => {
                    return Err(Malformed {
                        offset: hit,
                        expected: "no bare control character in a string",
                    });
                }
            }
        }
        if COUNT {
            starts += starts_before(block, BLOCK) + (next - at - BLOCK) as u64;
        }
        at = next;
    }
    Err(Malformed {
        offset: bytes.len(),
        expected: "the closing quote of a string",
    })
}

/// The length of the escape whose backslash is at `at`. Two escapes that form a surrogate pair are one.
fn escape_len(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            let first = hex(bytes, at + 2)?;
            let pair = (0xd800..0xdc00).contains(&first)
                && bytes.get(at + 6..at + 8) == Some(b"\\u")
                && hex(bytes, at + 8).is_ok_and(|second| (0xdc00..0xe000).contains(&second));
            Ok(if pair { 12 } else { 6 })
        }
        _ => Err(Malformed {
            offset: at + 1,
            expected: "an escape",
        }),
    }
}

/// The number that four hexadecimal digits at `at` spell.
fn hex(bytes: &[u8], at: usize) -> Result<u32, Malformed> {
    (at..at + 4).try_fold(0, |code, i| {
        let digit = bytes.get(i).and_then(|&b| char::from(b).to_digit(16));
        digit.map(|digit| code << 4 | digit).ok_or(Malformed {
            offset: i,
            expected: "four hexadecimal digits",
        })
    })
}

/// The mask of the block at `at`; bytes past the end need no look.
fn block_mask(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk::<BLOCK>() {
        Some(block) => specials(block),
        None => specials(&pad(&bytes[at..])),
    }
}

/// A block that begins with these bytes, which are fewer, and goes on with bytes that need no look.
fn pad(bytes: &[u8]) -> [u8; BLOCK] {
    let mut padded = [b' '; BLOCK];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// How many of the first `len` bytes begin a character: all but the continuation bytes of UTF-8.
#[inline]
fn starts_before(block: &[u8; BLOCK], len: usize) -> u64 {
    let lanes: [u8; BLOCK] = std::array::from_fn(|i| i as u8);
    // A sum of bytes vectorises best, and 64 do not overflow it.
    let starts: u8 = block
        .iter()
        .zip(lanes)
        .map(|(&b, lane)| u8::from(b as i8 >= -0x40) & u8::from(lane < len as u8))
        .sum();
    u64::from(starts)
}

/// Whether a byte is a quote, a backslash or a control character.
#[inline]
fn is_special(byte: u8) -> bool {
    // With its bit 1 flipped the quote follows the control characters, which stay what they are; one comparison finds
    // both. With its top bit flipped it may be a signed one, the only one that SSE2 has.
    const TOP: u8 = 0x80;
    ((byte ^ 0x02 ^ TOP) as i8) < ((b' ' + 1) ^ TOP) as i8 || byte == b'\\'
}

/// Bit `i` is set when byte `i` is a quote, a backslash or a control character.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u64 {
    /// Bit `i` of byte `i`.
    const DIAGONAL: u64 = 0x8040_2010_0804_0201;
    /// Multiplied by this, the highest byte becomes the sum of all bytes.
    const SUM: u64 = 0x0101_0101_0101_0101;
    // The compiler turns these loops into vector instructions.
    if !block.iter().fold(false, |any, &b| any | is_special(b)) {
        return 0;
    }
    let flags = block.map(|b| if is_special(b) { 0xff } else { 0 });
    flags.as_chunks::<8>().0.iter().rev().fold(0, |mask, word| {
        let bits = (u64::from_le_bytes(*word) & DIAGONAL).wrapping_mul(SUM) >> 56;
        mask << 8 | bits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn special(byte: u8) -> bool {
        byte == b'"' || byte == b'\\' || byte < 0x20
    }

    #[test]
    fn every_byte_value_in_every_lane() {
        for value in 0..=u8::MAX {
            for lane in 0..BLOCK {
                for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut block = [filler; BLOCK];
                    block[lane] = value;
                    let want = u64::from(special(value)) << lane;
                    assert_eq!(
                        specials(&block),
                        want,
                        "value {value:#x} in lane {lane} among {filler:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn neighbours_do_not_disturb_each_other() {
        // A pseudo-random walk (the constants are Knuth's MMIX generator) over blocks that are dense in special bytes.
        let mut state = 1u64;
        let dense = [
            b'"', b'\\', 0x00, 0x1f, 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff,
        ];
        for _ in 0..10_000 {
            let block: [u8; BLOCK] = std::array::from_fn(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                dense[(state >> 33) as usize % dense.len()]
            });
            let want = block
                .iter()
                .enumerate()
                .fold(0, |mask, (i, &b)| mask | u64::from(special(b)) << i);
            assert_eq!(specials(&block), want);
        }
    }
}
