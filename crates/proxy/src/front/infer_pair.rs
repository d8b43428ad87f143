//! An inference request to a server whose prefill and decode are done by different pods, from its plan on.

use super::headers::for_pod;
use super::infer::{Passed, origin_form};
use super::keep::settles;
use super::observe::Watcher;
use crate::error::Refusal;
use crate::forward::{Answer, cap, forward};
use crate::pd::{self, Legs};
use crate::record::Record;
use crate::sticky::Session;
use crate::upstream::{Head, Payload};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use routing::fleet::{Disaggregated, Pod};
use routing::pd::Split;
use routing::request::ModelRequest;
use routing::route::Routed;
use routing::schedule::{Ask, Memo, Pair, PairPlan};
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
        session: Option<Session<'_>>,
        record: &mut Record,
        parts: Parts,
    ) -> Result<Passed, Refusal> {
        let (plan, pinned) = self.plan(session.as_ref(), record)?;
        record.bound(self.routed);
        let head = Head {
            method: parts.method,
            uri: origin_form(&parts.uri),
            headers: for_pod(parts.headers, &parts.uri),
        };
        let session = session.map(|session| (session, pinned));
        self.send(session, record, &plan, head).await
    }

    /// The plan, and whether the session pinned the request to one pair.
    fn plan(
        &self,
        session: Option<&Session<'_>>,
        record: &Record,
    ) -> Result<(PairPlan, bool), Refusal> {
        let scheduler = &record.app.scheduler;
        let ask = self.ask();
        let mut watcher = Watcher::new(&record.app.metrics, record.model_label());
        let bound = session.and_then(|session| session.pair(self.routed.server));
        let pinned = bound.and_then(|(decode, prefill)| {
            scheduler.pinned_pair(&ask, self.pods, prefill, decode, &mut watcher)
        });
        let plan = match pinned {
            Some(plan) => Ok((plan, true)),
            None => {
                let plan = scheduler.plan_pairs(&ask, self.pods, &mut watcher);
                plan.map(|plan| (plan, false))
            }
        };
        watcher.finish();
        plan.map_err(Refusal::NoPair)
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            model: &self.request.model,
            prompt: &self.request.prompt,
            draw: crate::rand::bits(),
        }
    }

    async fn send(
        &self,
        session: Option<(Session<'_>, bool)>,
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
            let answer = forward(&app, routed.server, &decode, 0, &head, &payload, record).await?;
            return Ok(Passed::new(answer, false, plan.memo.clone()));
        };
        let legs = Legs::new(connector, split, self.body, head);
        let (answer, memo) = match session {
            None => {
                let answer = pd::forward(&app, routed.server, plan, &[], &legs, record).await?;
                (answer, plan.memo.clone())
            }
            Some((session, pinned)) => self.keep(session, pinned, plan, &legs, record).await?,
        };
        Ok(Passed::new(answer, adds_usage, memo))
    }

    /// Asks the pairs in order, and binds the session to the first of them before, to the one that served after. When a
    /// pinned pair fails before the first byte, the request is scheduled over the others.
    async fn keep(
        &self,
        mut session: Session<'_>,
        pinned: bool,
        plan: &PairPlan,
        legs: &Legs<'_>,
        record: &mut Record,
    ) -> Result<(Answer, Option<Memo>), Refusal> {
        let app = Arc::clone(&record.app);
        let server = self.routed.server;
        bind(&mut session, plan, &[]).await;
        let mut answer = pd::forward(&app, server, plan, &[], legs, record).await;
        let mut memo = plan.memo.clone();
        if pinned
            && !answer.as_ref().is_ok_and(settles)
            && let Some((failed, plan)) = self.elsewhere(plan, record)
        {
            bind(&mut session, &plan, &failed).await;
            let second = pd::forward(&app, server, &plan, &failed, legs, record).await;
            // An engine that answered counts more than one that did not.
            if answer.is_ok() && second.is_err() {
                let [decode, prefill] = &failed;
                record.served_by_pair(prefill, decode);
            } else {
                answer = second;
                memo = plan.memo;
            }
        }
        if let Ok(answer) = &answer
            && settles(answer)
        {
            let prefill = record.prefill().map(|pod| &**pod);
            session.served_by(answer.in_flight.pod(), prefill).await;
        }
        answer.map(|answer| (answer, memo))
    }

    /// The decode and the prefill pod that have failed, and a plan over the other pairs: first those of other decode pods.
    fn elsewhere(&self, pinned: &PairPlan, record: &Record) -> Option<([Arc<Pod>; 2], PairPlan)> {
        let pair = pinned.pairs.first()?;
        let (decode, prefill) = (&pair.decode, pair.prefill.first()?);
        if cap(&self.routed.server.policy) <= 1 {
            return None;
        }
        let (mut plan, _) = self.plan(None, record).ok()?;
        let is_left = |pair: &Pair| {
            pair.decode.id != decode.id || pair.prefill.iter().any(|pod| pod.id != prefill.id)
        };
        plan.pairs.retain(|pair| is_left(pair));
        plan.pairs.sort_by_key(|pair| pair.decode.id == decode.id);
        let failed = [Arc::clone(decode), Arc::clone(prefill)];
        (!plan.pairs.is_empty()).then_some((failed, plan))
    }
}

/// Binds the session to the pair that is asked first.
async fn bind(session: &mut Session<'_>, plan: &PairPlan, failed: &[Arc<Pod>]) {
    if let Some(pair) = plan.pairs.first() {
        let prefill = pair.prefill_without(failed).map(|pod| &**pod);
        session.bind(&pair.decode, prefill).await;
    }
}
