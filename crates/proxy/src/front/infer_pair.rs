//! A request to a server whose prefill and decode are done by different pods.

use super::keep::{Asked, Way};
use super::observe::Watcher;
use crate::app::App;
use crate::error::Refusal;
use crate::forward::{Answer, forward};
use crate::pd::{self, Legs};
use crate::record::Record;
use crate::sticky::Session;
use crate::upstream::{Head, Payload};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use routing::fleet::{Disaggregated, ModelServer, Pod};
use routing::pd::Split;
use routing::request::ModelRequest;
use routing::schedule::{Ask, Memo, PairPlan, ScheduleError};
use std::sync::Arc;

/// A request on its way to the pairs of a server.
pub(super) struct InPair<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) server: &'a ModelServer,
    pub(super) pods: &'a Disaggregated,
    pub(super) ask: Ask<'a>,
    pub(super) load: Load<'a>,
}

/// What the pods are sent.
pub(super) enum Load<'a> {
    Both(Box<Legs<'a>>),
    /// A form, such as an upload of speech: there is no way to ask for its prefill alone, so the decode pod does both.
    Decode(Box<(Head, Payload)>),
}

impl<'a> Load<'a> {
    /// `body` is the plain one, `head` the request's as a pod that does both would get it.
    pub(super) fn new(
        pods: &Disaggregated,
        request: &'a ModelRequest<'a>,
        body: &'a Bytes,
        upstream_model: Option<&'a str>,
        adds_usage: bool,
        mut head: Head,
    ) -> Self {
        let connector = pods.connector;
        match Split::new(connector, request, body, upstream_model, adds_usage) {
            Some(split) => Self::Both(Box::new(Legs::new(connector, split, body, head))),
            None => {
                let edits = request.edits(upstream_model, false);
                head.headers.remove(CONTENT_ENCODING);
                Self::Decode(Box::new((head, Payload::edited(body, edits))))
            }
        }
    }

    /// Whether a usage event that the client did not ask for is among the answer.
    pub(super) fn hides_usage(&self, adds_usage: bool) -> bool {
        adds_usage && matches!(self, Self::Both(_))
    }
}

impl Way for InPair<'_> {
    type Plan = PairPlan;

    fn server(&self) -> &ModelServer {
        self.server
    }

    fn pinned(&self, session: &Session<'_>, watcher: &mut Watcher<'_>) -> Option<PairPlan> {
        let (decode, prefill) = session.pair(self.server)?;
        let scheduler = &self.app.scheduler;
        scheduler.pinned_pair(&self.ask, self.pods, prefill, decode, watcher)
    }

    fn plan(
        &self,
        failed: Option<&PairPlan>,
        watcher: &mut Watcher<'_>,
    ) -> Result<PairPlan, ScheduleError> {
        let scheduler = &self.app.scheduler;
        let mut plan = match failed.and_then(|plan| plan.pairs.first()) {
            None => scheduler.plan_pairs(&self.ask, self.pods, watcher)?,
            Some(failed) => scheduler.plan_pairs_without(&self.ask, self.pods, failed, watcher)?,
        };
        if let Some(is_behind) = self.app.is_behind() {
            plan.put_behind(is_behind);
        }
        if let (Some(failed), Load::Decode(_)) = (failed, &self.load) {
            let has_failed = |pod: &Pod| failed.pairs.iter().any(|pair| pair.decode.id == pod.id);
            plan.pairs.retain(|pair| !has_failed(&pair.decode));
        }
        match plan.pairs.is_empty() {
            true => Err(ScheduleError::NoPairs),
            false => Ok(plan),
        }
    }

    fn first<'p>(plan: &'p PairPlan, failed: Option<&PairPlan>) -> Option<Asked<'p>> {
        let failed = failed.map_or_else(Vec::new, pods);
        let (decode, prefill) = plan.turns(&failed).next()?;
        Some((decode, Some(prefill)))
    }

    async fn ask(
        &self,
        plan: &PairPlan,
        failed: Option<&PairPlan>,
        record: &mut Record,
    ) -> Result<Answer, Refusal> {
        let Self { app, server, .. } = self;
        match &self.load {
            Load::Both(legs) => {
                let failed = failed.map_or_else(Vec::new, pods);
                pd::forward(app, server, plan, &failed, legs, record).await
            }
            Load::Decode(whole) => {
                let (head, payload) = &**whole;
                let tried = failed.map_or(0, |plan| plan.pairs.len());
                let pods: Vec<_> = plan.pairs.iter().map(|p| Arc::clone(&p.decode)).collect();
                forward(app, server, &pods, tried, head, payload, record).await
            }
        }
    }

    fn served<'p>(&self, plan: &'p PairPlan, record: &'p Record) -> Option<Asked<'p>> {
        let (decode, prefill) = record.asked()?;
        match &self.load {
            Load::Both(_) => Some((decode, prefill)),
            Load::Decode(_) => {
                let pair = plan.pairs.iter().find(|pair| pair.decode.id == decode.id)?;
                Some((decode, pair.prefill.first()))
            }
        }
    }

    fn memo(plan: PairPlan) -> Option<Memo> {
        plan.memo
    }
}

/// Both pods of a plan's first pair.
fn pods(plan: &PairPlan) -> Vec<Arc<Pod>> {
    let first = plan.pairs.first().into_iter();
    first
        .flat_map(|pair| std::iter::once(&pair.decode).chain(pair.prefill.first()))
        .cloned()
        .collect()
}
