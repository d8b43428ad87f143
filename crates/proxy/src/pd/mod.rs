//! A request over two pods: prefill on one, decode on another.
//!
//! An attempt is a pair of pods. Until the first byte of the decode pod's body came, the failure of either leg ends the
//! attempt: dropping it cancels the other leg at once, and the next pair is asked. Each leg is in flight on its own pod
//! for its own time. What remains of an attempt once its response is being relayed is its [`Companion`].

mod attempt;
mod companion;
mod leg;
mod phase;

pub(crate) use companion::Companion;

use crate::app::App;
use crate::error::Refusal;
use crate::forward::{Answer, cap, is_retryable};
use crate::record::Record;
use crate::upstream::{Head, Payload};
use attempt::Attempt;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use phase::Phases;
use routing::fleet::{ModelServer, Pod};
use routing::pd::{Connector, Handover, Order, Split};
use routing::schedule::{MAX_ATTEMPTS, PairPlan};
use std::sync::Arc;

/// What both legs of a request are made of.
#[derive(Debug)]
pub(crate) struct Legs<'a> {
    connector: Connector,
    /// The client's body, decoded.
    body: &'a Bytes,
    split: Split<'a>,
    prefill: Head,
    decode: Head,
}

impl<'a> Legs<'a> {
    /// `head` is the request's as a pod that does both would get it.
    pub(crate) fn new(
        connector: Connector,
        split: Split<'a>,
        body: &'a Bytes,
        mut head: Head,
    ) -> Self {
        // Both bodies are made of the plain one.
        head.headers.remove(CONTENT_ENCODING);
        // A room, or a handed-over cache, is used up by the first try: a leg that fails ends its attempt.
        head.once = true;
        let mut prefill = head.clone();
        if connector.hands_over_params() {
            // The answer is for the router, which reads it as it is.
            prefill.headers.remove(ACCEPT_ENCODING);
        }
        Self {
            connector,
            body,
            split,
            prefill,
            decode: head,
        }
    }

    fn order(&self) -> Order {
        self.connector.order()
    }

    fn prefill_body(&self, room: u64) -> Payload {
        Payload::edited(self.body, self.split.prefill(room))
    }

    fn decode_body(&self, handover: &Handover<'_>) -> Payload {
        Payload::edited(self.body, self.split.decode(handover))
    }
}

/// Asks pair after pair ([`PairPlan::turns`]), after a pair of `tried` pods, if there are any, has failed. When no other
/// is left, the first of those that may have failed for a stale connection alone is asked once more, anew from the
/// prefill on. Returns the first response that is no reason to ask another pair; if there is none, the last response that an
/// engine gave.
pub(crate) async fn forward(
    app: &Arc<App>,
    server: &ModelServer,
    plan: &PairPlan,
    tried: &[Arc<Pod>],
    legs: &Legs<'_>,
    record: &mut Record,
) -> Result<Answer, Refusal> {
    let policy = &server.policy;
    let phases = Phases::new(app, record);
    let mut turns = plan.turns(tried);
    let before = usize::from(!tried.is_empty());
    let left = cap(policy).saturating_sub(before).min(MAX_ATTEMPTS);
    let mut answered = None;
    let (mut stale, mut repeats) = (None, true);
    let mut last = String::from("no candidate");
    for number in 0..left {
        let next = turns.next().or_else(|| {
            let pair = stale.filter(|_| repeats)?;
            repeats = false;
            Some(pair)
        });
        let Some((decode, prefill)) = next else {
            break;
        };
        if number + before > 0 && !policy.retry_interval.is_zero() {
            tokio::time::sleep(policy.retry_interval).await;
        }
        let attempt = Attempt {
            app,
            legs,
            phases: &phases,
            timeout: policy.timeout,
            prefill,
            decode,
        };
        record.attempt_pair(prefill, decode);
        let at_fault = match attempt.run().await {
            Ok(mut answer) => {
                record.upstream_status(answer.head.status.as_u16());
                if !is_retryable(answer.head.status) {
                    return Ok(answer);
                }
                // The pod is done, whatever becomes of its answer.
                answer.in_flight.end();
                let pod = Arc::clone(answer.in_flight.pod());
                last = format!("{} answered {}", pod.name, answer.head.status);
                answered = Some((answer, prefill, decode));
                pod
            }
            Err(error) => {
                if error.is_no_connection() {
                    app.took_no_connection(&error.pod);
                }
                if error.is_stale() {
                    stale = stale.or(Some((decode, prefill)));
                }
                last = error.to_string();
                error.pod
            }
        };
        tracing::warn!(
            prefill = %prefill.name, decode = %decode.name, request_id = ?record.request_id(),
            "attempt failed: {last}"
        );
        turns.failed(at_fault);
    }
    let (answer, prefill, decode) = answered.ok_or(Refusal::AllPairsFailed { last })?;
    record.served_by(decode, Some(prefill));
    Ok(answer)
}
