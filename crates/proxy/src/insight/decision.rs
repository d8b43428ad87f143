//! A decision that was carried out.

use super::passes::{Passes, Place};
use routing::fleet::ObjectName;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Candidates that are kept of one decision, and of each side of a pair: the best ones, and the one that holds most of the
/// prompt, wherever it came. A fleet of a thousand pods must not fill the memory.
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
    /// Best first; of a pair the decode pods first.
    pub(crate) candidates: Vec<Candidate>,
    /// Pods that each filter has dropped.
    pub(crate) filtered: Vec<(&'static str, u32)>,
}

/// A pod that passed the filters.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) pod: ObjectName,
    /// Which side of a pair it would be.
    role: Option<&'static str>,
    pub(crate) total: u64,
    pub(crate) scores: Vec<(&'static str, u8)>,
    pub(crate) matched: u32,
}

impl Candidate {
    /// A pod that nothing was scored for.
    pub(crate) fn unscored(pod: ObjectName) -> Self {
        Self {
            pod,
            role: None,
            total: 0,
            scores: Vec::new(),
            matched: 0,
        }
    }

    pub(crate) fn of(place: Place<'_>) -> Option<Self> {
        Some(Self {
            pod: place.name()?.clone(),
            role: None,
            total: u64::try_from(place.total()).unwrap_or(u64::MAX),
            scores: place.scores().collect(),
            matched: place.matched(),
        })
    }

    /// The best, best first; if a pair was chosen, those for each side.
    pub(crate) fn best(passes: &Passes, paired: bool) -> Vec<Self> {
        let sides = passes.sides().into_iter().map(best_of);
        let roles = [Some("decode"), Some("prefill")].map(|role| role.filter(|_| paired));
        let named = sides.zip(roles).flat_map(|(places, role)| {
            let candidates = places.into_iter().filter_map(Self::of);
            candidates.map(move |candidate| Self { role, ..candidate })
        });
        named.collect()
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
            "role": self.role,
            "total": self.total,
            "scores": self.scores(),
            "matchedBlocks": self.matched,
        })
    }
}

fn best_of(mut places: Vec<Place<'_>>) -> Vec<Place<'_>> {
    places.sort_by_key(|place| Reverse(place.total()));
    let rest = places.split_off(places.len().min(MAX_CANDIDATES));
    let most = places.iter().map(Place::matched).max().unwrap_or_default();
    // The best of those that hold most comes first among them.
    let holder = rest.into_iter().rev().max_by_key(Place::matched);
    if let (Some(holder), Some(last)) = (holder.filter(|p| p.matched() > most), places.last_mut()) {
        *last = holder;
    }
    places
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
            "filtered": self.filtered.iter().copied().collect::<BTreeMap<_, _>>(),
        })
    }
}
