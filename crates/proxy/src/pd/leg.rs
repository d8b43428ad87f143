//! The prefill leg: sent, answered, and read to its end.

use super::phase::Phase;
use crate::app::App;
use crate::forward::Answer;
use crate::upstream::{Head, Payload, SendError, Stage, UpstreamBody};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use routing::fleet::InFlight;
use std::sync::Arc;
use std::time::Duration;

/// Longest answer of a prefill pod that is kept, in bytes. It holds one token and the ids of the prompt's blocks: a million tokens in
/// blocks of 16 with ids of 7 digits are half of a megabyte.
const MAX_ANSWER: usize = 8 << 20;

/// What came of a prefill leg.
#[derive(Debug)]
pub(super) enum Prefilled {
    /// The pod has done it. Its answer, if that was to be kept.
    Done(Bytes),
    /// The pod said no; its answer is the client's, unless another pair is asked.
    Answered(Box<Answer>),
}

/// A prefill leg under way. Dropping it cancels it.
pub(super) type Leg = dyn Future<Output = Result<Prefilled, SendError>> + Send;

/// Asks for the prefill and reads the answer, `timeout` at most for all of it. `keep`: the answer is needed.
pub(super) async fn prefill(
    app: Arc<App>,
    in_flight: InFlight,
    head: Head,
    body: Payload,
    keep: bool,
    timeout: Option<Duration>,
    phase: Phase,
) -> Result<Prefilled, SendError> {
    let leg = async {
        let pool = app.upstreams.pool(in_flight.pod());
        let (head, body) = pool.send(&head, &body, None).await?.into_parts();
        if !head.status.is_success() {
            return Ok(Prefilled::Answered(Box::new(Answer {
                head,
                first: None,
                body,
                in_flight,
                companion: None,
            })));
        }
        let answer = read(body, keep).await?;
        phase.succeeded();
        Ok(Prefilled::Done(answer))
    };
    match timeout {
        None => leg.await,
        Some(limit) => tokio::time::timeout(limit, leg).await.unwrap_or_else(|_| {
            Err(SendError::new(
                Stage::Prefill,
                "not done within the timeout",
            ))
        }),
    }
}

/// Reads the answer to its end. One that is not kept may be of any length: the prompt's logprobs alone can have tens of
/// megabytes.
async fn read(mut body: UpstreamBody, keep: bool) -> Result<Bytes, SendError> {
    let mut kept = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SendError::new(Stage::Prefill, error))?;
        let Some(data) = frame.into_data().ok().filter(|_| keep) else {
            continue;
        };
        if kept.len() + data.len() > MAX_ANSWER {
            return Err(SendError::new(
                Stage::Prefill,
                "the answer is longer than 8 MiB",
            ));
        }
        kept.extend_from_slice(&data);
    }
    Ok(kept.freeze())
}
