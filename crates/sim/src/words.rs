//! Made-up text: answers of the simulated engine, prompts of the load generator.

use crate::{rng::Rng, tokens};

/// Frequent English words, so that the text has the bytes a token of ordinary prose.
const WORDS: &[&str] = &[
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "with",
    "as",
    "on",
    "be",
    "by",
    "this",
    "are",
    "from",
    "or",
    "an",
    "each",
    "which",
    "one",
    "all",
    "when",
    "there",
    "use",
    "more",
    "will",
    "other",
    "about",
    "many",
    "then",
    "some",
    "time",
    "two",
    "like",
    "long",
    "make",
    "first",
    "may",
    "number",
    "way",
    "part",
    "over",
    "new",
    "sound",
    "take",
    "only",
    "little",
    "work",
    "know",
    "place",
    "year",
    "live",
    "back",
    "give",
    "most",
    "very",
    "after",
    "thing",
    "our",
    "just",
    "name",
    "good",
    "sentence",
    "great",
    "think",
    "help",
    "through",
    "much",
    "before",
    "line",
    "right",
    "mean",
    "old",
    "any",
    "same",
    "tell",
    "follow",
    "came",
    "want",
    "show",
    "also",
    "around",
    "form",
    "three",
    "small",
    "set",
    "end",
    "does",
    "another",
    "well",
    "large",
    "must",
    "big",
    "even",
    "such",
    "because",
    "turn",
    "here",
    "why",
    "ask",
    "different",
    "read",
    "need",
    "land",
    "point",
    "world",
    "answer",
    "system",
    "order",
    "state",
    "between",
    "result",
    "question",
    "reason",
    "number",
    "during",
    "example",
    "measure",
    "problem",
    "complete",
    "general",
];
/// Words of one sentence, at least and at most.
const SENTENCE: (usize, usize) = (6, 18);

/// The pieces of endless prose, one token each; glued together they cut into the same tokens again.
#[derive(Clone, Debug)]
pub struct Prose {
    rng: Rng,
    words_left: usize,
    started: bool,
    pending: Vec<&'static str>,
}

impl Prose {
    /// The prose of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            words_left: 0,
            started: false,
            pending: Vec::new(),
        }
    }

    /// The next token's text.
    pub fn next_piece(&mut self) -> String {
        if let Some(piece) = self.pending.pop() {
            return piece.to_owned();
        }
        if self.words_left == 0 && self.started {
            self.words_left = self.rng.between(SENTENCE.0, SENTENCE.1);
            return ".".to_owned();
        }
        if !self.started {
            self.words_left = self.rng.between(SENTENCE.0, SENTENCE.1);
        }
        self.words_left -= 1;
        let word = WORDS[self.rng.below(WORDS.len())];
        let lead = if self.started { " " } else { "" };
        self.started = true;
        // The first piece takes the space, so it is cut as `" " + word` would be.
        let room = tokens::MAX_TOKEN_BYTES - lead.len();
        let (head, tail) = word.split_at(word.len().min(room));
        let mut rest: Vec<&'static str> = tokens::pieces(tail).collect();
        rest.reverse();
        self.pending = rest;
        format!("{lead}{head}")
    }

    /// The next `count` tokens as one text.
    pub fn text(&mut self, count: usize) -> String {
        (0..count).map(|_| self.next_piece()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Prose;
    use crate::tokens;

    proptest! {
        #[test]
        fn prose_cuts_into_the_pieces_it_was_made_of(seed in any::<u64>(), count in 1_usize..300) {
            let mut prose = Prose::new(seed);
            let made: Vec<String> = (0..count).map(|_| prose.next_piece()).collect();
            let text = made.concat();
            prop_assert_eq!(tokens::pieces(&text).collect::<Vec<_>>(), made);
        }
    }

    #[test]
    fn prose_is_repeatable_and_differs_by_seed() {
        assert_eq!(Prose::new(1).text(50), Prose::new(1).text(50));
        assert_ne!(Prose::new(1).text(50), Prose::new(2).text(50));
    }
}
