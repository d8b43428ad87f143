//! What a request leaves behind besides metrics and its access log line: the comparison with the engine, a line of the
//! recording, a decision for the debug pages.

use super::Record;
use crate::insight::{self, Decision};
use crate::recording::Served;
use std::time::Instant;

impl Record {
    /// The pod has served the request in good order, and the engine has reported if it ever does.
    pub(crate) fn served(&mut self) {
        self.trail.served();
        // A decode pod counts what it was handed over as cached, too.
        if let (Some(pod), None) = (&self.pod, &self.prefill) {
            let Some(inside) = self.app.scheduler.prefix_cache() else {
                return;
            };
            let served = insight::Served {
                model: &self.model_label,
                api: self.api,
                trail: &self.trail,
                pod,
                args: inside.args,
            };
            let agreements = &self.app.insight.agreements;
            agreements.add(&self.app.metrics, &served);
        }
    }

    /// Hands the request over to the recorder, if it was served and is to be recorded.
    pub(super) fn leave_recording(&mut self) {
        let Some(body) = self.trail.take_served_body() else {
            return;
        };
        let Some(recorder) = &self.app.recorder else {
            return;
        };
        let usage = self.trail.usage();
        recorder.record(Served {
            at: self.timestamp,
            path: std::mem::take(&mut self.path),
            prompt_tokens: usage.map(|usage| usage.whole_prompt),
            output_tokens: usage.map(|usage| usage.completion),
            body,
        });
    }

    /// Leaves the decision for the debug pages, if the request is one of those that are looked at closely.
    pub(super) fn leave_decision(&self) {
        let (true, Some(pod)) = (self.trail.sampled, &self.pod) else {
            return;
        };
        let (chosen, candidates) = self.trail.candidates(pod, self.prefill.is_some());
        let server = self.binding.as_ref().map(|b| b.backend_name.as_str());
        let since_start = |at: Instant| (at - self.started).as_secs_f64() * 1e3;
        let usage = self.trail.usage();
        self.app.insight.decisions.push(Decision {
            at: self.timestamp.as_millisecond() as f64 / 1e3,
            request_id: self.request_id.to_str().unwrap_or_default().to_owned(),
            model: self.model_label.as_str().to_owned(),
            model_server: server.unwrap_or_default().to_owned(),
            pod: chosen,
            prefill_pod: self.prefill.as_ref().map(|pod| pod.name.clone()),
            hashed_blocks: self.trail.predicted().hashed,
            attempts: self.attempts,
            pinned: self.trail.is_pinned(),
            status: self.status,
            ttft_ms: self.trail.first_byte().map(since_start),
            prompt_tokens: usage.map(|usage| usage.whole_prompt),
            cached_tokens: usage.and_then(|usage| usage.cached),
            candidates,
            filtered: self.trail.dropped().to_vec(),
        });
    }
}
