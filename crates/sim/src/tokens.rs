//! A deterministic stand-in for a model's tokenizer: text to token ids without a vocabulary file.
//!
//! A token is one optional space and a run of letters, up to [`MAX_TOKEN_BYTES`] bytes in all; digits come up to three
//! at a time, white space in runs, any other character alone. English text gives about four bytes a token, as byte-pair
//! encodings do. An id is a hash of the token's bytes, so two tokens share an id once in [`VOCABULARY`] pairs.
//!
//! **Where a token ends depends only on the text up to the next character**: the tokens of a prefix are a prefix of the
//! tokens, except the last one. Prefix caching needs that, and real tokenizers nearly have it.
//!
//! The markers of a chat (`<|im_start|>`, `<|im_end|>`) are single ids, written by [`ChatTokens`] and never read from text.

use xxhash_rust::xxh3::xxh3_64;

/// Number of distinct token ids. The size of today's larger vocabularies.
pub const VOCABULARY: u32 = 1 << 18;
/// Longest token in bytes, its leading space included.
pub const MAX_TOKEN_BYTES: usize = 6;

/// Ids below this are the chat's markers.
const SPECIAL: u32 = 16;
const IM_START: u32 = 1;
const IM_END: u32 = 2;
const MAX_DIGITS: usize = 3;

/// The id of one token's text.
fn id_of(piece: &str) -> u32 {
    let hash = xxh3_64(piece.as_bytes());
    SPECIAL + (hash % u64::from(VOCABULARY - SPECIAL)) as u32
}

/// The tokens of `text` as pieces of it; concatenated they are `text` again.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = rest.split_at(token_end(rest));
        rest = tail;
        Some(piece)
    })
}

/// The token ids of `text`.
#[must_use]
pub fn encode(text: &str) -> Vec<u32> {
    pieces(text).map(id_of).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Blank,
    Other,
}

fn class_of(c: char) -> Class {
    match c {
        _ if c.is_ascii_digit() => Class::Digit,
        _ if c.is_whitespace() => Class::Blank,
        '\'' | '_' => Class::Letter,
        _ if c.is_alphabetic() => Class::Letter,
        _ => Class::Other,
    }
}

/// Length in bytes of the first token of a text that is not empty.
fn token_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let mut end = 0;
    let mut class = Class::Blank;
    let mut count = 0;
    if let Some(&(_, ' ')) = chars.peek() {
        chars.next();
        end = 1;
        count = 1;
        // One space leads the word, number or sign behind it; before white space it starts a run of white space.
        match chars.peek().map(|&(_, c)| class_of(c)) {
            None => return end,
            Some(Class::Blank) => {}
            Some(next) => {
                class = next;
                count = 0;
            }
        }
    } else if let Some(&(_, first)) = chars.peek() {
        class = class_of(first);
    }
    for (at, c) in chars {
        let next = at + c.len_utf8();
        let fits = match class {
            Class::Other => count == 0,
            Class::Digit => count < MAX_DIGITS,
            Class::Letter | Class::Blank => next <= MAX_TOKEN_BYTES || count == 0,
        };
        if class_of(c) != class || !fits {
            break;
        }
        end = next;
        count += 1;
    }
    end
}

/// The prompt of a chat as tokens: `<|im_start|>ROLE\nCONTENT<|im_end|>\n` for each message, then the assistant's head.
///
/// Because a marker is a token of its own, chats that share their first messages share all tokens of them.
#[derive(Clone, Debug, Default)]
pub struct ChatTokens(Vec<u32>);

impl ChatTokens {
    /// Adds one message.
    pub fn message(&mut self, role: &str, content: &str) {
        self.head(role);
        self.0.extend(pieces(content).map(id_of));
        self.0.push(IM_END);
        self.0.push(id_of("\n"));
    }

    /// Ends the prompt with the head of the answer to be generated.
    #[must_use]
    pub fn for_answer(mut self) -> Vec<u32> {
        self.head("assistant");
        self.0
    }

    fn head(&mut self, role: &str) {
        self.0.push(IM_START);
        self.0.extend(pieces(role).map(id_of));
        self.0.push(id_of("\n"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ChatTokens, IM_END, MAX_TOKEN_BYTES, VOCABULARY, encode, pieces};

    fn split(text: &str) -> Vec<&str> {
        pieces(text).collect()
    }

    #[test]
    fn english_is_cut_into_words_of_about_four_bytes() {
        assert_eq!(
            split("The prefix  cache, in 2026:\n\nkeeps"),
            [
                "The", " prefi", "x", "  ", "cache", ",", " in", " 202", "6", ":", "\n\n", "keeps"
            ]
        );
        let text = "The router sends each request to the pod that already holds the longest part of its prompt in the \
                    cache, so that the engine computes only the rest of it and the first token comes sooner.";
        let per_token = text.len() as f64 / split(text).len() as f64;
        assert!((3.6..4.8).contains(&per_token), "{per_token}");
    }

    #[test]
    fn a_conversation_extends_the_tokens_of_its_start() {
        let mut first = ChatTokens::default();
        first.message("system", "Be short.");
        first.message("user", "What is a block?");
        let mut second = first.clone();
        let first = first.for_answer();
        second.message("assistant", "Sixteen tokens.");
        second.message("user", "And a prefix?");
        let second = second.for_answer();
        assert_eq!(second[..first.len()], first[..]);
        assert_eq!(second.iter().filter(|&&id| id == IM_END).count(), 4);
    }

    proptest! {
        #[test]
        fn pieces_are_the_text_and_are_bounded(text in any::<String>()) {
            prop_assert_eq!(pieces(&text).collect::<String>(), text.clone());
            for piece in pieces(&text) {
                // One character may be longer than the bound by itself, behind a space.
                prop_assert!(!piece.is_empty() && (piece.len() <= MAX_TOKEN_BYTES || piece.trim_start().chars().count() <= 1));
            }
            prop_assert!(encode(&text).iter().all(|&id| id < VOCABULARY));
        }

        #[test]
        fn tokens_of_a_prefix_are_a_prefix_except_the_last(text in "[a-zA-Zé世 0-9,.'\n]{0,60}", cut in 0_usize..60) {
            let at = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let (short, long) = (encode(&text[..at]), encode(&text));
            let kept = short.len().saturating_sub(1);
            prop_assert_eq!(&short[..kept], &long[..kept]);
        }
    }
}
