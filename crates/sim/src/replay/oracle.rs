//! A reference that no router can reach: it sees every engine's real cache and queue at the moment of the decision.

use super::world::Prompt;
use crate::model::Engine;
use routing::schedule::MAX_ATTEMPTS;
use smallvec::SmallVec;

/// An engine that may be asked, and how much of the prompt it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// The engine's number.
    pub(super) engine: usize,
    /// Tokens of the prompt in its cache.
    pub(super) cached: usize,
    seconds: f64,
}

/// The engines with the least estimated time to first token, best first; equal ones by their numbers.
pub(super) fn best<'e>(
    engines: impl Iterator<Item = (usize, &'e Engine)>,
    prompt: &Prompt,
) -> SmallVec<[Candidate; MAX_ATTEMPTS]> {
    let mut hashes = None;
    let mut all: SmallVec<[Candidate; 32]> = engines
        .map(|(number, engine)| {
            let hashes = hashes.get_or_insert_with(|| engine.hashes(&prompt.tokens, prompt.salt));
            let estimate = engine.estimate(hashes, prompt.tokens.len());
            Candidate {
                engine: number,
                cached: estimate.cached,
                seconds: estimate.seconds,
            }
        })
        .collect();
    all.sort_by(|a, b| {
        a.seconds
            .total_cmp(&b.seconds)
            .then(a.engine.cmp(&b.engine))
    });
    all.into_iter().take(MAX_ATTEMPTS).collect()
}
