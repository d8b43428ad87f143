//! The prompt of a request that is not kept as text.
//!
//! A trace knows which blocks its prompts share, not what they say. A block is replayed as a text that its number makes, of
//! four bytes a token: a space and three letters. That is one token of [`crate::tokens`], so bytes and tokens agree about
//! where a block ends, and a router that compares bytes sees the sharing that the engine sees.

use crate::rng::Rng;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a token of made text.
pub(super) const TOKEN_BYTES: usize = 4;
/// Tokens that one draw of 64 bits makes.
const TOKENS_A_DRAW: usize = 4;
/// Bits of a draw that make a token.
const TOKEN_BITS: u32 = 15;
const LETTERS: u32 = 26;
/// Tokens that there are.
const NUMBERS: u32 = LETTERS * LETTERS * LETTERS;
/// Lowest id of a token of made text; those below are markers of chats.
const FIRST_ID: u32 = 16;

/// A stretch of made text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// What makes its text: equal seeds make equal text, up to the shorter one's end.
    pub seed: u64,
    /// Its length.
    pub tokens: u32,
}

/// What a request carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A prompt of made text, sent as a completion to this model.
    Made {
        /// The model.
        model: std::sync::Arc<str>,
        /// One after the other.
        segments: Vec<Segment>,
    },
    /// The body as a client sent it, in JSON.
    Body(Bytes),
}

impl Segment {
    /// Calls `each` with the number of every token: three letters, as digits to the base of 26.
    fn numbers(self, mut each: impl FnMut(u32)) {
        let mut rng = Rng::new(self.seed);
        let mut left = self.tokens as usize;
        while left > 0 {
            let mut bits = rng.next_u64();
            for _ in 0..left.min(TOKENS_A_DRAW) {
                // A fraction of 15 bits, scaled.
                let fraction = (bits & ((1 << TOKEN_BITS) - 1)) as u32;
                each((fraction * NUMBERS) >> TOKEN_BITS);
                bits >>= TOKEN_BITS;
            }
            left -= left.min(TOKENS_A_DRAW);
        }
    }

    /// Length of its text.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.tokens as usize * TOKEN_BYTES
    }

    /// Appends its text.
    pub fn write(self, out: &mut Vec<u8>) {
        out.reserve(self.tokens as usize * TOKEN_BYTES);
        self.numbers(|number| {
            let letter = |digit: u32| b'a' + (digit % LETTERS) as u8;
            let (a, b) = (number / (LETTERS * LETTERS), number / LETTERS);
            out.extend_from_slice(&[b' ', letter(a), letter(b), letter(number)]);
        });
    }

    /// Appends the ids of its tokens. Equal texts have equal ids.
    pub fn tokens(self, out: &mut Vec<u32>) {
        out.reserve(self.tokens as usize);
        self.numbers(|number| out.push(FIRST_ID + number));
    }
}

/// The ids of a prompt's tokens where each has `length` bytes (at least 1) on average: token `n` ends at byte `(n + 1) × length`, rounded
/// down, so that prompts which share bytes share tokens, whatever the length. At least one, as every engine is given something.
pub(in crate::replay) fn cut(prompt: &[u8], length: f64) -> Vec<u32> {
    let mut tokens = Vec::with_capacity((prompt.len() as f64 / length) as usize + 1);
    let mut start = 0;
    while let Some(rest) = prompt.get(start..)
        && !rest.is_empty()
    {
        let end = ((tokens.len() + 1) as f64 * length) as usize;
        let piece = rest.get(..end - start).unwrap_or(rest);
        // The lower half of a good hash is one.
        tokens.push(xxh3_64(piece) as u32);
        start = end;
    }
    if tokens.is_empty() {
        tokens.push(FIRST_ID);
    }
    tokens
}

/// Writes a completion's body for a prompt of made text, which needs no escapes.
pub(in crate::replay) fn completion(model: &str, segments: &[Segment], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"{\"model\":");
    out.extend_from_slice(serde_json::Value::from(model).to_string().as_bytes());
    out.extend_from_slice(b",\"prompt\":\"");
    segments.iter().for_each(|segment| segment.write(out));
    out.extend_from_slice(b"\"}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens;

    #[test]
    fn made_text_is_cut_into_its_own_tokens() {
        let segment = Segment {
            seed: 7,
            tokens: 513,
        };
        let (mut text, mut ids) = (Vec::new(), Vec::new());
        segment.write(&mut text);
        segment.tokens(&mut ids);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.len(), 513 * TOKEN_BYTES);
        let pieces: Vec<&str> = tokens::pieces(&text).collect();
        assert_eq!(pieces.len(), ids.len());
        for (a, &id) in pieces.iter().zip(&ids) {
            for (b, &other) in pieces.iter().zip(&ids) {
                assert_eq!(a == b, id == other, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_longer_segment_begins_with_the_shorter_one() {
        let text = |tokens| {
            let mut out = Vec::new();
            Segment { seed: 3, tokens }.write(&mut out);
            out
        };
        assert!(text(40).starts_with(&text(37)));
        assert_ne!(
            text(4),
            {
                let mut out = Vec::new();
                Segment { seed: 4, tokens: 4 }.write(&mut out);
                out
            },
            "another seed is another text"
        );
    }

    #[test]
    fn tokens_of_any_length_are_shared_as_their_bytes_are() {
        let text: Vec<u8> = (0..=255).collect();
        for (length, count) in [(1.0, 256), (3.7, 70), (4.0, 64), (300.0, 1)] {
            let whole = cut(&text, length);
            assert_eq!(whole.len(), count, "{length}");
            let distinct: std::collections::HashSet<_> = whole.iter().collect();
            assert_eq!(distinct.len(), count, "{length}");
            let part = cut(&text[..100], length);
            let same = part.iter().zip(&whole).take_while(|(a, b)| a == b).count();
            assert!(same + 1 >= part.len(), "all but the last: {length}");
        }
        assert_eq!(cut(b"", 4.0).len(), 1);
    }

    #[test]
    fn a_made_body_is_json() {
        let mut body = Vec::new();
        let segments = [
            Segment { seed: 1, tokens: 3 },
            Segment { seed: 2, tokens: 2 },
        ];
        completion("a \"model\"", &segments, &mut body);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["model"], "a \"model\"");
        assert_eq!(value["prompt"].as_str().unwrap().len(), 5 * TOKEN_BYTES);
    }
}
