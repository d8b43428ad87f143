//! An inference request to a server whose prefill and decode are done by different pods, from its plan on.

use super::headers::for_pod;
use super::infer::{Passed, origin_form};
use super::observe::Watcher;
use crate::error::Refusal;
use crate::forward::forward;
use crate::pd::{self, Legs};
use crate::record::Record;
use crate::upstream::{Head, Payload};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use routing::fleet::Disaggregated;
use routing::pd::Split;
use routing::request::ModelRequest;
use routing::route::Routed;
use routing::schedule::{Ask, PairPlan};
use std::sync::Arc;

/// A request that has found its server.
pub(super) struct Job<'a> {
    pub(super) routed: &'a Routed<'a>,
    pub(super) pods: &'a Disaggregated,
    pub(super) request: &'a ModelRequest<'a>,
    /// Decoded.
    pub(super) body: &'a Bytes,
}

impl Job<'_> {
    /// Plans and asks until a pair answers.
    pub(super) async fn pass_on(
        self,
        record: &mut Record,
        parts: Parts,
    ) -> Result<Passed, Refusal> {
        let plan = self.plan(record)?;
        record.bound(self.routed);
        let head = Head {
            method: parts.method,
            uri: origin_form(&parts.uri),
            headers: for_pod(parts.headers, &parts.uri),
        };
        self.send(record, &plan, head).await
    }

    fn plan(&self, record: &Record) -> Result<PairPlan, Refusal> {
        let app = &record.app;
        let ask = Ask {
            model: &self.request.model,
            prompt: &self.request.prompt,
            draw: crate::rand::bits(),
        };
        let mut watcher = Watcher::new(&app.metrics, record.model_label());
        let plan = app.scheduler.plan_pairs(&ask, self.pods, &mut watcher);
        watcher.finish();
        plan.map_err(Refusal::NoPair)
    }

    async fn send(
        &self,
        record: &mut Record,
        plan: &PairPlan,
        mut head: Head,
    ) -> Result<Passed, Refusal> {
        let app = Arc::clone(&record.app);
        let (request, routed) = (self.request, self.routed);
        let adds_usage =
            !request.wants_usage() && request.stream && request.api.has_stream_options();
        let connector = self.pods.connector;
        let upstream_model = routed.upstream_model;
        let split = Split::new(connector, request, self.body, upstream_model, adds_usage);
        let Some(split) = split else {
            // A form, such as an upload of speech: there is no way to ask for its prefill alone.
            let edits = request.edits(upstream_model, false);
            head.headers.remove(CONTENT_ENCODING);
            let payload = Payload::edited(self.body, edits);
            let decode: Vec<_> = plan.pairs.iter().map(|p| Arc::clone(&p.decode)).collect();
            let answer = forward(&app, routed.server, &decode, &head, &payload, record).await?;
            return Ok(Passed::new(answer, false, plan.memo.clone()));
        };
        let legs = Legs::new(connector, split, self.body, head);
        let answer = pd::forward(&app, routed.server, plan, &legs, record).await?;
        Ok(Passed::new(answer, adds_usage, plan.memo.clone()))
    }
}
