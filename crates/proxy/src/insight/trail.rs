//! What one request leaves behind besides its access log line.

use super::passes::{Passes, Place, Predicted, Seen};
use super::{Candidate, header};
use crate::relay::Usage;
use bytes::Bytes;
use http::HeaderValue;
use prefix_index::PodId;
use routing::fleet::Pod;
use std::time::Instant;

/// Part of a request's record. Without a sample or a wish to be told, it allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Kept for the debug pages.
    pub(crate) sampled: bool,
    /// Told to the client.
    told: bool,
    pinned: bool,
    passes: Passes,
    predicted: Predicted,
    /// Length of the prompt, in bytes, as the body spells it.
    pub(crate) prompt_bytes: usize,
    first_byte: Option<Instant>,
    usage: Option<Usage>,
    /// The client's JSON, where requests are recorded.
    pub(crate) body: Option<Bytes>,
    /// A pod has served the request in good order.
    served: bool,
}

impl Trail {
    /// The trail of a request whose client is to be `told`.
    pub(crate) fn new(told: bool) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }

    /// Whether every score is wanted.
    pub(crate) fn is_close(&self) -> bool {
        self.sampled || self.told
    }

    /// The request was scheduled, perhaps anew. `pinned`: by its session.
    pub(crate) fn decided(&mut self, seen: Seen, pinned: bool) {
        self.pinned = pinned;
        self.passes = seen.passes.unwrap_or_default();
        self.predicted = seen.predicted;
    }

    /// Bytes of a stream are here.
    pub(crate) fn streams(&mut self) {
        if self.sampled && self.first_byte.is_none() {
            self.first_byte = Some(Instant::now());
        }
    }

    /// The engine has reported.
    pub(crate) fn reported(&mut self, usage: Option<Usage>) {
        self.usage = usage;
    }

    /// A pod has served the request in good order.
    pub(crate) fn served(&mut self) {
        self.served = true;
    }

    /// The body of a request that is to be recorded.
    pub(crate) fn take_served_body(&mut self) -> Option<Bytes> {
        self.body.take().filter(|_| self.served)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned
    }

    pub(crate) fn predicted(&self) -> &Predicted {
        &self.predicted
    }

    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.usage.as_ref()
    }

    pub(crate) fn first_byte(&self) -> Option<Instant> {
        self.first_byte
    }

    pub(super) fn place(&self, pod: PodId) -> Option<Place<'_>> {
        self.passes.of(pod)
    }

    /// The pod as a candidate, and the best of all; of each side if there is a prefill pod.
    pub(crate) fn candidates(&self, pod: &Pod, paired: bool) -> (Candidate, Vec<Candidate>) {
        let chosen = self.place(pod.id).and_then(Candidate::of);
        let chosen = chosen.unwrap_or_else(|| Candidate::unscored(pod.name.clone()));
        (chosen, Candidate::best(&self.passes, paired))
    }

    /// Pods that each filter has dropped.
    pub(crate) fn dropped(&self) -> &[(&'static str, u32)] {
        self.passes.dropped()
    }

    /// What the client is told, if it is to be.
    pub(crate) fn told(
        &self,
        pod: &Pod,
        prefill: Option<&Pod>,
        attempts: u32,
    ) -> Option<HeaderValue> {
        let told = self
            .told
            .then(|| header::value(self, pod, prefill, attempts));
        told.flatten()
    }
}
