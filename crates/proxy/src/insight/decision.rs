//! A decision that was carried out.

use super::passes::{Passes, Place};
use routing::fleet::ObjectName;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;

/// Candidates that are kept of one decision; the best ones. A fleet of a thousand pods must not fill the memory.
const MAX_CANDIDATES: usize = 16;

/// One request, why it went where it went, and what came of it.
#[derive(Debug)]
pub(crate) struct Decision {
    /// Receipt, in seconds of Unix time.
    pub(crate) at: f64,
    pub(crate) request_id: String,
    pub(crate) model: String,
    pub(crate) model_server: String,
    /// The pod that answered, or the one that was asked last.
    pub(crate) pod: Candidate,
    pub(crate) prefill_pod: Option<ObjectName>,
    pub(crate) hashed_blocks: u32,
    /// How many pods, or pairs of them, were asked.
    pub(crate) attempts: u32,
    /// Bound to its pod by a session, so nothing was scored.
    pub(crate) pinned: bool,
    pub(crate) status: u16,
    /// Receipt to the first byte of a stream, in milliseconds.
    pub(crate) ttft_ms: Option<f64>,
    /// As the engine reports it.
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    /// Best first.
    pub(crate) candidates: Vec<Candidate>,
}

/// A pod that passed the filters.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) pod: ObjectName,
    pub(crate) total: u64,
    pub(crate) scores: Vec<(&'static str, u8)>,
    pub(crate) matched: u32,
}

impl Candidate {
    /// A pod that nothing was scored for.
    pub(crate) fn unscored(pod: ObjectName) -> Self {
        Self {
            pod,
            total: 0,
            scores: Vec::new(),
            matched: 0,
        }
    }

    pub(crate) fn of(place: Place<'_>) -> Option<Self> {
        Some(Self {
            pod: place.name()?.clone(),
            total: u64::try_from(place.total()).unwrap_or(u64::MAX),
            scores: place.scores().collect(),
            matched: place.matched(),
        })
    }

    /// The best of all passes, best first.
    pub(crate) fn best(passes: &Passes) -> Vec<Self> {
        let mut places: Vec<_> = passes.places().collect();
        places.sort_by_key(|place| Reverse(place.total()));
        places.truncate(MAX_CANDIDATES);
        places.into_iter().filter_map(Self::of).collect()
    }

    fn scores(&self) -> Map<String, Value> {
        let scores = self.scores.iter();
        scores
            .map(|(plugin, score)| ((*plugin).to_owned(), (*score).into()))
            .collect()
    }

    fn json(&self) -> Value {
        json!({
            "pod": self.pod.as_str(),
            "total": self.total,
            "scores": self.scores(),
            "matchedBlocks": self.matched,
        })
    }
}

impl Decision {
    pub(crate) fn json(&self) -> Value {
        json!({
            "at": self.at,
            "requestId": self.request_id,
            "model": self.model,
            "modelServer": self.model_server,
            "pod": self.pod.pod.as_str(),
            "prefillPod": self.prefill_pod.as_ref().map(ObjectName::as_str),
            "total": self.pod.total,
            "scores": self.pod.scores(),
            "matchedBlocks": self.pod.matched,
            "hashedBlocks": self.hashed_blocks,
            "attempt": self.attempts,
            "pinned": self.pinned,
            "status": self.status,
            "ttftMs": self.ttft_ms,
            "promptTokens": self.prompt_tokens,
            "cachedTokens": self.cached_tokens,
            "candidates": self.candidates.iter().map(Candidate::json).collect::<Vec<_>>(),
        })
    }
}
