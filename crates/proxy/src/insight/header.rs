//! `x-kthena-decision`: a decision in one line, for whoever sent the request.

use super::trail::Trail;
use http::{HeaderMap, HeaderName, HeaderValue};
use routing::fleet::Pod;
use std::fmt::Write as _;

/// Carries a decision, in a response.
pub(crate) const X_DECISION: HeaderName = HeaderName::from_static("x-kthena-decision");
/// Asks for it, in a request.
const X_EXPLAIN: HeaderName = HeaderName::from_static("x-kthena-explain");

/// The greatest integer of a structured field (RFC 8941, 3.3.1).
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// Which responses carry `x-kthena-decision`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionHeader {
    /// None.
    #[default]
    Never,
    /// Those to requests with `x-kthena-explain: 1`.
    OnRequest,
    /// All of requests that were scheduled.
    Always,
}

impl DecisionHeader {
    /// Whether a request's response is to carry it. Takes the wish out of the headers: it is for the router.
    pub(crate) fn wanted(self, headers: &mut HeaderMap) -> bool {
        match self {
            Self::Never => false,
            Self::OnRequest => headers.remove(X_EXPLAIN).is_some_and(|wish| wish == "1"),
            Self::Always => {
                headers.remove(X_EXPLAIN);
                true
            }
        }
    }
}

/// A dictionary of RFC 8941: the pod or the pair, its total and scores, or that a session chose it.
pub(super) fn value(
    trail: &Trail,
    pod: &Pod,
    prefill: Option<&Pod>,
    attempts: u32,
) -> Option<HeaderValue> {
    let mut text = format!("pod=\"{}\"", pod.name);
    if let Some(prefill) = prefill {
        let _ = write!(text, ", prefill-pod=\"{}\"", prefill.name);
    }
    // Writing to a string does not fail.
    match trail.place(pod.id) {
        Some(place) => {
            let total = u64::try_from(place.total()).unwrap_or(u64::MAX);
            let _ = write!(text, ", total={}", total.min(MAX_INTEGER));
            for (plugin, score) in place.scores() {
                let _ = write!(text, ", {plugin}={score}");
            }
        }
        None if trail.is_pinned() => text.push_str(", pinned"),
        None => {}
    }
    let predicted = trail.predicted();
    if predicted.hashed > 0 {
        let matched = predicted.blocks(pod.id);
        let _ = write!(text, ", matched={matched}, hashed={}", predicted.hashed);
    }
    let _ = write!(text, ", attempt={attempts}");
    HeaderValue::from_str(&text).ok()
}
