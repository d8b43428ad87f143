//! What can go wrong between the router and a pod before a response.

use std::fmt;

/// How far an attempt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// No connection could be made.
    Connect,
    /// The connection broke before the response head.
    Head,
    /// The connection broke after the head, before the first byte of the body.
    FirstByte,
    /// `trafficPolicy.timeout` passed before the response head.
    Timeout,
    /// The pod switched to another protocol, which no request asks for.
    Switched,
    /// The answer to a prefill was not what it must be.
    Prefill,
}

/// A failed attempt. Whatever its stage, nothing of a response was passed on, so another pod may be tried.
#[derive(Debug)]
pub struct SendError {
    /// How far it came.
    pub stage: Stage,
    /// Whether it rode on a kept connection that had served a request before, and broke at once without a byte: the engine
    /// may have closed it before.
    pub(crate) stale: bool,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl SendError {
    pub(crate) fn new(
        stage: Stage,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            stage,
            stale: false,
            cause: Some(cause.into()),
        }
    }

    pub(crate) fn bare(stage: Stage) -> Self {
        Self {
            stage,
            stale: false,
            cause: None,
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.stage {
            Stage::Connect => "cannot connect",
            Stage::Head => "connection closed before the response",
            Stage::FirstByte => "connection closed before the first byte of the response body",
            Stage::Timeout => "no response headers within the timeout",
            Stage::Switched => "101 Switching Protocols, though no switch was asked for",
            Stage::Prefill => "no usable answer to the prefill",
        })?;
        let mut cause = self.cause.as_deref().map(|c| c as &dyn std::error::Error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for SendError {}
