//! Finding the end of a JSON string, the one loop that sees nearly every byte of a request.
//!
//! A block of 64 bytes becomes one 64-bit mask of the bytes that need a look (quote, backslash, control character);
//! everything else is skipped without a branch per byte.

use super::escape;
use super::json::Malformed;
use wide::i8x16;

/// Bytes per mask.
const BLOCK: usize = 64;

/// Continuation bytes of UTF-8 are those below this one, as signed bytes.
const CONTINUATIONS_END: i8 = 0xc0_u8.cast_signed();

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
    // Bytes that add no character: continuation bytes of UTF-8, and those of an escape but one.
    let mut silent = 0;
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
        let mut hits = specials(block);
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize;
            let hit = at + lane;
            match bytes[hit] {
                b'"' => {
                    let mut characters = 0;
                    if COUNT {
                        let before = continuations(block) & !(u64::MAX << lane);
                        characters = (hit - start - silent) as u64 - u64::from(before.count_ones());
                    }
                    return Ok(Scanned {
                        end: hit,
                        characters,
                    });
                }
                b'\\' => {
                    let len = escape::check(bytes, hit)?;
                    silent += len - 1;
                    hits &= u64::MAX.checked_shl((lane + len) as u32).unwrap_or(0);
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
        if COUNT && !is_ascii(block) {
            silent += continuations(block).count_ones() as usize;
        }
        at = next;
    }
    Err(Malformed {
        offset: bytes.len(),
        expected: "the closing quote of a string",
    })
}

/// The mask of the block at `at`; bytes past the end need no look.
fn block_mask(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk::<BLOCK>() {
        Some(block) => specials(block),
        None => specials(&pad(&bytes[at..])),
    }
}

/// A block that begins with these bytes, which are fewer, and goes on with spaces, which need no look.
#[cold]
fn pad(bytes: &[u8]) -> [u8; BLOCK] {
    let mut padded = [b' '; BLOCK];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Whether all bytes are ASCII.
#[inline]
fn is_ascii(block: &[u8; BLOCK]) -> bool {
    let any = parts(block).fold(i8x16::ZERO, |any, part| any | part);
    any.to_bitmask() == 0
}

/// Bit `i` is set when byte `i` is a quote, a backslash or a control character.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u64 {
    mask(block, special)
}

/// Bit `i` is set when byte `i` is a continuation byte of UTF-8.
#[inline]
fn continuations(block: &[u8; BLOCK]) -> u64 {
    mask(block, |part| part.simd_lt(i8x16::splat(CONTINUATIONS_END)))
}

#[inline]
fn mask(block: &[u8; BLOCK], flag: impl Fn(i8x16) -> i8x16) -> u64 {
    parts(block).rev().fold(0, |mask, part| {
        mask << 16 | u64::from(flag(part).to_bitmask() as u16)
    })
}

/// The block as vectors of signed bytes: only signed ones can be compared in one instruction of SSE2.
#[inline]
fn parts(block: &[u8; BLOCK]) -> impl DoubleEndedIterator<Item = i8x16> {
    let parts = block.as_chunks::<16>().0;
    parts
        .iter()
        .map(|part| i8x16::new(part.map(u8::cast_signed)))
}

/// All bits of a lane are set when it is a quote, a backslash or a control character.
#[inline]
fn special(part: i8x16) -> i8x16 {
    // With bit 1 flipped the quote is the byte after the control characters, which stay among themselves, so that one
    // comparison finds both. Flipping the top bit makes it a signed one.
    const FLIP: u8 = 0x82;
    (part ^ splat(FLIP)).simd_lt(splat((b'"' ^ FLIP) + 1)) | part.simd_eq(splat(b'\\'))
}

#[inline]
fn splat(byte: u8) -> i8x16 {
    i8x16::splat(byte.cast_signed())
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
