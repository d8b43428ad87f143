//! A request without its words: which of its blocks are equal to others of the same recording, and nothing else.

use routing::prompt::Prompt;
use routing::request::ModelRequest;
use serde::{Serialize, Serializer};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;

/// Bytes of a block.
const BLOCK_BYTES: usize = 64;

/// The key of one run, which is never written anywhere: without it nobody can try out which text a hash stands for, and
/// hashes of two runs do not compare.
///
/// The hash is std's SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) under 128 bits from the
/// operating system.
#[derive(Debug, Default)]
pub(super) struct Key(RandomState);

impl Key {
    fn model(&self, name: &str) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u8(0);
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    fn block(&self, before: u64, block: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u8(1);
        hasher.write_u64(before);
        hasher.write(block);
        hasher.finish()
    }

    /// The chain over a prompt, as prefix-cache reads it but to its end, the last, shorter block included; and the prompt's
    /// length in bytes.
    fn chain(&self, model: u64, prompt: &Prompt<'_>) -> (Vec<Hex>, usize) {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        let (mut blocks, mut bytes, mut before) = (Vec::new(), 0, model);
        let mut close = |block: &mut Vec<u8>| {
            before = self.block(before, block);
            blocks.push(Hex(before));
            block.clear();
        };
        prompt.walk(|mut piece| {
            bytes += piece.len();
            while let Some((head, rest)) = piece.split_at_checked(BLOCK_BYTES - block.len()) {
                block.extend_from_slice(head);
                close(&mut block);
                piece = rest;
            }
            block.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        if !block.is_empty() {
            close(&mut block);
        }
        (blocks, bytes)
    }
}

/// What is left of a request.
#[derive(Debug, Serialize)]
pub(super) struct Redacted {
    model: Hex,
    /// Of the prompt.
    bytes: usize,
    block_bytes: usize,
    blocks: Vec<Hex>,
}

/// A hash as 16 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hex(u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl Redacted {
    pub(super) fn new(key: &Key, request: &ModelRequest<'_>) -> Self {
        let model = key.model(&request.model);
        let (blocks, bytes) = key.chain(model, &request.prompt);
        Self {
            model: Hex(model),
            bytes,
            block_bytes: BLOCK_BYTES,
            blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(key: &Key, model: &str, text: &str) -> (Vec<Hex>, usize) {
        key.chain(key.model(model), &Prompt::from_text(text))
    }

    #[test]
    fn equal_blocks_have_equal_hashes_under_one_key_only() {
        let key = Key::default();
        let text = "0123456789".repeat(13);
        let (whole, bytes) = chain(&key, "m", &text);
        assert_eq!((whole.len(), bytes), (3, 130));
        assert_eq!(
            chain(&key, "m", &text[..128]).0,
            whole[..2],
            "no empty block"
        );
        let (shorter, _) = chain(&key, "m", &text[..129]);
        assert_eq!(shorter[..2], whole[..2]);
        assert_ne!(shorter[2], whole[2], "the last one is hashed, too");
        let (other, _) = chain(&key, "m", &text.replacen('0', "-", 1));
        assert!(
            other.iter().zip(&whole).all(|(a, b)| a != b),
            "all that follows"
        );
        assert!(
            chain(&key, "n", &text)
                .0
                .iter()
                .zip(&whole)
                .all(|(a, b)| a != b)
        );
        assert_ne!(chain(&Key::default(), "m", &text).0[0], whole[0]);
        assert_eq!(chain(&key, "m", ""), (Vec::new(), 0));
    }
}
