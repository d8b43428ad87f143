//! Pod after pod until one answers. Whether another pod may be tried is decided here and nowhere else.

use crate::app::App;
use crate::error::Refusal;
use crate::pd::Companion;
use crate::record::Record;
use crate::upstream::{BodyError, Head, Payload, SendError, Stage, UpstreamBody};
use bytes::Bytes;
use http::{StatusCode, response};
use http_body_util::BodyExt;
use routing::fleet::{InFlight, ModelServer, Pod, TrafficPolicy};
use std::sync::Arc;
use std::time::Duration;

/// A pod's response, of which the client has not seen anything yet.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: response::Parts,
    /// The first piece of the body, if it was waited for.
    pub(crate) first: Option<Bytes>,
    pub(crate) body: UpstreamBody,
    /// The pod, counted as busy as long as this lives.
    pub(crate) in_flight: InFlight,
    /// The prefill side, if another pod did the prefill.
    pub(crate) companion: Option<Box<Companion>>,
}

/// Asks the pods in order; `tried` others were asked before. Returns the first response that is no reason to ask another
/// pod; if there is none, the last response that an engine gave.
pub(crate) async fn forward(
    app: &App,
    server: &ModelServer,
    pods: &[Arc<Pod>],
    tried: usize,
    head: &Head,
    body: &Payload,
    record: &mut Record,
) -> Result<Answer, Refusal> {
    let policy = &server.policy;
    let cap = cap(policy).saturating_sub(tried);
    let mut answered: Option<Answer> = None;
    let mut last_error = String::from("no candidate");
    for (attempt, pod) in pods.iter().take(cap).enumerate() {
        if attempt + tried > 0 && !policy.retry_interval.is_zero() {
            tokio::time::sleep(policy.retry_interval).await;
        }
        record.attempt(pod);
        match ask(app, pod, head, body, policy.timeout).await {
            Ok(mut answer) => {
                record.upstream_status(answer.head.status.as_u16());
                if let Some(refused) = answered.take() {
                    refused.body.discard();
                }
                if !is_retryable(answer.head.status) {
                    return Ok(answer);
                }
                last_error = format!("{} answered {}", pod.name, answer.head.status);
                // The pod is done, whatever becomes of its answer.
                answer.in_flight.end();
                answered = Some(answer);
            }
            Err(error) => {
                if error.stage == Stage::Connect {
                    app.took_no_connection(pod);
                }
                last_error = format!("{}: {error}", pod.name);
            }
        }
        tracing::warn!(pod = %pod.name, request_id = ?record.request_id(), "attempt failed: {last_error}");
    }
    let answer = answered.ok_or(Refusal::AllFailed { last: last_error })?;
    record.served_by(answer.in_flight.pod(), None);
    Ok(answer)
}

/// Attempts that a policy allows.
pub(crate) fn cap(policy: &TrafficPolicy) -> usize {
    let attempts = policy.attempts.filter(|&n| n > 0);
    attempts.map_or(usize::MAX, |n| n as usize)
}

/// Statuses that say "not now" or "not here" rather than "not this request".
pub(crate) fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}

/// Asks one pod, and waits for the first piece of its body.
pub(crate) async fn ask(
    app: &App,
    pod: &Arc<Pod>,
    head: &Head,
    body: &Payload,
    timeout: Option<Duration>,
) -> Result<Answer, SendError> {
    let in_flight = pod.begin();
    let response = app.upstreams.pool(pod).send(head, body, timeout).await?;
    let (head, mut body) = response.into_parts();
    let first = if is_retryable(head.status) {
        None
    } else {
        first_piece(&mut body, app.settings.head_hold).await?
    };
    Ok(Answer {
        head,
        first,
        body,
        in_flight,
        companion: None,
    })
}

/// Waits for the first piece of the body, `hold` at most: until it comes the pod may still fail unseen.
async fn first_piece(
    body: &mut UpstreamBody,
    hold: Option<Duration>,
) -> Result<Option<Bytes>, SendError> {
    let piece = async {
        loop {
            match body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(SendError::new(Stage::FirstByte, error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Ok(Some(data));
                    }
                }
            }
        }
    };
    match hold {
        None => piece.await,
        Some(limit) => tokio::time::timeout(limit, piece).await.unwrap_or(Ok(None)),
    }
}

/// The pod broke off: what the access log says.
pub(crate) fn broken(error: &BodyError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
