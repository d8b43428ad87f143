//! A JSON answer seen from the side, piece by piece, whatever its length.

use super::facts::Facts;

/// Longest value that is waited for, in bytes. `usage` with all its details stays below 1 KiB.
const MAX_VALUE: usize = 8 << 10;

/// Watches a JSON body. Of what has passed it keeps the start of a match that is still to be completed, and nothing else.
#[derive(Debug, Default)]
pub struct JsonWatch {
    facts: Facts,
    /// Whether the document is whole, where nothing else tells.
    brackets: Option<Brackets>,
    /// The end of what was seen, if something in it may go on in the next piece.
    carried: Vec<u8>,
}

impl JsonWatch {
    /// From now on a document that is not whole at the end of its body is known as such.
    pub(super) fn match_brackets(&mut self) {
        self.brackets = Some(Brackets::default());
    }

    pub(super) fn look(&mut self, piece: &[u8]) {
        if let Some(brackets) = &mut self.brackets {
            brackets.look(piece);
        }
        if !self.carried.is_empty() {
            // Where the two pieces meet; whatever begins in the new one is found there.
            let seam = piece.len().min(MAX_VALUE);
            self.carried.extend_from_slice(&piece[..seam]);
            let open = self.facts.read_json(&self.carried);
            if seam == piece.len() {
                let from = open.max(self.carried.len().saturating_sub(MAX_VALUE));
                self.carried.drain(..from);
                return;
            }
            self.carried.clear();
        }
        let open = self.facts.read_json(piece);
        let from = open.max(piece.len().saturating_sub(MAX_VALUE));
        self.carried.extend_from_slice(&piece[from..]);
    }

    pub(super) fn finish(&mut self) -> Facts {
        self.carried = Vec::new();
        self.facts.complete = self.brackets.as_ref().is_some_and(Brackets::match_up);
        self.facts
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.carried.len()
    }
}

/// The brackets of a document, to tell a whole one from the start of one.
#[derive(Debug, Default)]
struct Brackets {
    open: usize,
    in_string: bool,
    /// The next character of the string is escaped.
    escaped: bool,
}

impl Brackets {
    fn look(&mut self, piece: &[u8]) {
        for &byte in piece {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.open += 1,
                b'}' | b']' => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn match_up(&self) -> bool {
        self.open == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_document_only_the_whole_is_complete() {
        let text = r#" {"a":"}]\"[{\\","b":[{},{"c":"\""}]} "#;
        let complete = |pieces: [&str; 2]| {
            let mut watch = JsonWatch::default();
            watch.match_brackets();
            for piece in pieces {
                watch.look(piece.as_bytes());
            }
            watch.finish().complete
        };
        let end = text.trim_end().len();
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert!(complete([head, tail]), "{cut}");
            // Of what has not begun nobody knows what it would be.
            let whole = cut < 2 || cut >= end;
            assert_eq!(complete([head, ""]), whole, "{head}");
        }
    }
}
