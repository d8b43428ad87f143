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

/// The index of the quote that closes the string whose content begins at `start`.
///
/// The content is checked: no control characters, every escape is one that RFC 8259 knows. UTF-8 is checked elsewhere.
pub(super) fn closing_quote(bytes: &[u8], start: usize) -> Result<usize, Malformed> {
    let mut hits = Hits::from(bytes, start);
    while let Some(hit) = hits.next() {
        match bytes[hit] {
            b'"' => return Ok(hit),
            b'\\' => hits.skip_to(hit + escape_len(bytes, hit)?),
            _ => {
                return Err(Malformed {
                    offset: hit,
                    expected: "no bare control character in a string",
                });
            }
        }
    }
    Err(Malformed {
        offset: bytes.len(),
        expected: "the closing quote of a string",
    })
}

/// The length of the escape whose backslash is at `at`.
fn escape_len(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            match (at + 2..at + 6).find(|&i| !bytes.get(i).is_some_and(u8::is_ascii_hexdigit)) {
                None => Ok(6),
                Some(offset) => Err(Malformed {
                    offset,
                    expected: "four hexadecimal digits",
                }),
            }
        }
        _ => Err(Malformed {
            offset: at + 1,
            expected: "an escape",
        }),
    }
}

/// The mask of the block at `at`; bytes past the end need no look.
fn block_mask(bytes: &[u8], at: usize) -> u64 {
    if let Some(block) = bytes[at..].first_chunk::<BLOCK>() {
        return specials(block);
    }
    let mut padded = [b' '; BLOCK];
    padded[..bytes.len() - at].copy_from_slice(&bytes[at..]);
    specials(&padded)
}

/// Bit `i` is set when byte `i` is a quote, a backslash or a control character.
fn specials(block: &[u8; BLOCK]) -> u64 {
    /// Bit `i` of byte `i`.
    const DIAGONAL: u64 = 0x8040_2010_0804_0201;
    /// Multiplied by this, the highest byte becomes the sum of all bytes.
    const SUM: u64 = 0x0101_0101_0101_0101;
    // The compiler turns this loop into vector compares.
    let flags = block.map(|b| {
        if b == b'"' || b == b'\\' || b < 0x20 {
            0xff
        } else {
            0
        }
    });
    let words = flags.as_chunks::<8>().0;
    if words
        .iter()
        .fold(0, |any, word| any | u64::from_le_bytes(*word))
        == 0
    {
        return 0;
    }
    words.iter().rev().fold(0, |mask, word| {
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
