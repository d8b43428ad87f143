//! A JSON answer seen from the side, piece by piece, whatever its length.

use super::facts::Facts;

/// Longest value that is waited for, in bytes. `usage` with all its details stays below 1 KiB.
const MAX_VALUE: usize = 8 << 10;

/// Watches a JSON body. Of what has passed it keeps the start of a match that is still to be completed, and nothing else.
#[derive(Debug, Default)]
pub struct JsonWatch {
    facts: Facts,
    /// The end of what was seen, if something in it may go on in the next piece.
    carried: Vec<u8>,
}

impl JsonWatch {
    pub(super) fn look(&mut self, piece: &[u8]) {
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
        self.facts
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.carried.len()
    }
}
