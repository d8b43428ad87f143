//! One pair of pods asked.

use super::Legs;
use super::companion::Companion;
use super::leg::{Leg, Prefilled};
use super::phase::{Phase, Phases};
use crate::app::App;
use crate::forward::{Answer, ask};
use crate::upstream::{Payload, SendError, Stage};
use bytes::Bytes;
use routing::fleet::Pod;
use routing::pd::{Handover, Order, transfer_params};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

/// Rooms are below 2^63: engines hold them as signed 64-bit numbers.
const ROOMS: u64 = 1 << 63;

/// One attempt. Dropping its future cancels both legs.
pub(super) struct Attempt<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) legs: &'a Legs<'a>,
    pub(super) phases: &'a Phases,
    /// Longest time of the prefill leg, and of the decode leg's wait for its headers.
    pub(super) timeout: Option<Duration>,
    pub(super) prefill: &'a Arc<Pod>,
    pub(super) decode: &'a Arc<Pod>,
}

/// A leg without an answer. Nothing of a response was passed on, so another pair may be tried.
#[derive(Debug)]
pub(super) struct AttemptError {
    /// Whose leg it was.
    pub(super) pod: Arc<Pod>,
    leg: &'static str,
    cause: SendError,
}

impl AttemptError {
    /// Whether the pod did not take a connection.
    pub(super) fn is_no_connection(&self) -> bool {
        self.cause.stage == Stage::Connect
    }

    /// Whether it was perhaps only the connection that was to blame: a kept one, which broke at once.
    pub(super) fn is_stale(&self) -> bool {
        self.cause.stale
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}: {}", self.leg, self.pod.name, self.cause)
    }
}

impl Attempt<'_> {
    /// Asks both pods. Returns the decode pod's answer with its first byte at hand, or else the answer of the pod that
    /// said no.
    pub(super) async fn run(&self) -> Result<Answer, AttemptError> {
        match self.legs.order() {
            Order::Sequential => self.sequential().await,
            Order::Concurrent => self.concurrent().await,
        }
    }

    async fn sequential(&self) -> Result<Answer, AttemptError> {
        let answer = match self
            .prefill_leg(0)
            .await
            .map_err(|e| self.prefill_failed(e))?
        {
            Prefilled::Done(answer) => answer,
            Prefilled::Answered(answer) => return Ok(*answer),
        };
        let params = match self.legs.connector.hands_over_params() {
            true => Some(self.params(&answer)?),
            false => None,
        };
        let handover = params
            .as_ref()
            .map_or(Handover::Nothing, |p| Handover::Params(p));
        let body = self.legs.decode_body(&handover);
        let phase = self.phases.decode();
        let answer = self.ask_decode(&body).await?;
        Ok(self.accompanied(answer, phase, None))
    }

    async fn concurrent(&self) -> Result<Answer, AttemptError> {
        let room = crate::rand::bits() % ROOMS;
        let host = &self.prefill.endpoint.host;
        let body = self.legs.decode_body(&Handover::Bootstrap { host, room });
        let mut prefill = Some(self.prefill_leg(room));
        let phase = self.phases.decode();
        let mut decode = pin!(self.ask_decode(&body));
        let answer = loop {
            let Some(leg) = &mut prefill else {
                break decode.await?;
            };
            tokio::select! {
                // A prefill that was refused is the reason of a decode that fails with it.
                biased;
                done = leg => match done.map_err(|e| self.prefill_failed(e))? {
                    Prefilled::Done(_) => prefill = None,
                    Prefilled::Answered(answer) => return Ok(*answer),
                },
                answer = &mut decode => break answer?,
            }
        };
        Ok(self.accompanied(answer, phase, prefill))
    }

    /// Starts the prefill leg; the pod is in flight from now on.
    fn prefill_leg(&self, room: u64) -> Pin<Box<Leg>> {
        let keeps = self.legs.connector.hands_over_params();
        let leg = super::leg::prefill(
            Arc::clone(self.app),
            self.prefill.begin(),
            self.legs.prefill.clone(),
            self.legs.prefill_body(room),
            keeps,
            self.timeout,
            self.phases.prefill(),
        );
        Box::pin(leg)
    }

    async fn ask_decode(&self, body: &Payload) -> Result<Answer, AttemptError> {
        let asked = ask(self.app, self.decode, &self.legs.decode, body, self.timeout).await;
        asked.map_err(|cause| AttemptError {
            pod: Arc::clone(self.decode),
            leg: "decode",
            cause,
        })
    }

    /// The decode pod's answer with what settles the pair at its end, if it is one that will be relayed as a success.
    fn accompanied(&self, mut answer: Answer, phase: Phase, leg: Option<Pin<Box<Leg>>>) -> Answer {
        if answer.head.status.is_success() {
            let companion = Companion::new(Arc::clone(self.prefill), phase, leg);
            answer.companion = Some(Box::new(companion));
        }
        answer
    }

    /// The value of `kv_transfer_params` in the prefill pod's answer, as it is spelled there.
    fn params(&self, answer: &Bytes) -> Result<Bytes, AttemptError> {
        match transfer_params(answer) {
            Ok(Some(range)) => Ok(answer.slice(range)),
            Ok(None) => {
                tracing::warn!(
                    pod = %self.prefill.name,
                    "NIXL: missing 'kv_transfer_params' in prefill response"
                );
                Ok(Bytes::from_static(b"null"))
            }
            Err(error) => Err(self.prefill_failed(SendError::new(Stage::Prefill, error))),
        }
    }

    fn prefill_failed(&self, cause: SendError) -> AttemptError {
        AttemptError {
            pod: Arc::clone(self.prefill),
            leg: "prefill",
            cause,
        }
    }
}
