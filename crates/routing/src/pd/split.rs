//! The bodies of both legs of a request.

use super::Connector;
use crate::request::members::Members;
use crate::request::{Api, Edits, ModelRequest, merge};
use std::ops::Range;

/// What a prefill engine is told when it shall keep the cache for a decode engine.
const KEEP_FOR_DECODE: &[u8] = br#"{"do_remote_decode":true,"do_remote_prefill":false}"#;
const TRANSFER_PARAMS: &str = "kv_transfer_params";
const BOOTSTRAP_ROOM: &str = "bootstrap_room";
const BOOTSTRAP_HOST: &str = "bootstrap_host";

/// What the decode leg must be told of the prefill leg.
#[derive(Clone, Copy, Debug)]
pub enum Handover<'a> {
    /// Nothing.
    Nothing,
    /// The value of `kv_transfer_params`, as the prefill pod spelled it.
    Params(&'a [u8]),
    /// Where the prefill pod waits.
    Bootstrap {
        /// The prefill pod's host, without brackets.
        host: &'a str,
        /// The room of this attempt, below 2^63.
        room: u64,
    },
}

/// A request as its two legs.
#[derive(Debug)]
pub struct Split<'a> {
    connector: Connector,
    members: Members<'a>,
    api: Api,
    /// The edits that the prefill leg shares with a request that is not split.
    prefill: Edits,
    /// Those of the decode leg.
    decode: Edits,
}

impl<'a> Split<'a> {
    /// Splits a request whose plain body this is. `None` when the body is no JSON object, so that there is no way to ask
    /// for a prefill alone. `upstream_model` and `want_usage` are as for [`ModelRequest::edits`]; only the decode leg asks
    /// for usage.
    #[must_use]
    pub fn new(
        connector: Connector,
        request: &ModelRequest<'_>,
        body: &'a [u8],
        upstream_model: Option<&str>,
        want_usage: bool,
    ) -> Option<Self> {
        Some(Self {
            connector,
            members: Members::of(body)?,
            api: request.api,
            prefill: request.edits(upstream_model, false),
            decode: request.edits(upstream_model, want_usage),
        })
    }

    /// What changes in the body for the prefill pod: one token, at once and not as a stream.
    ///
    /// `room` is the one of this attempt, below 2^63, for connectors that meet in one.
    #[must_use]
    pub fn prefill(&self, room: u64) -> Edits {
        let mut splice = self.members.splice();
        splice.remove("stream");
        splice.remove("stream_options");
        splice.set("max_tokens", b"1");
        let is_set = |name| self.members.get(name).is_some_and(|v| !v.is_null());
        if is_set("max_completion_tokens") {
            splice.set("max_completion_tokens", b"1");
        }
        // The only limit that Responses has; without it the prefill pod would write the whole answer.
        if self.api == Api::Responses {
            splice.set("max_output_tokens", b"1");
        }
        // A minimum above the limit would be refused.
        let least = self.members.get("min_tokens").and_then(|v| v.as_number());
        if least.is_some_and(|least| least > 1.0) {
            splice.set("min_tokens", b"1");
        }
        match self.connector {
            Connector::Http | Connector::LmCache => {}
            Connector::Nixl | Connector::Mooncake => splice.set(TRANSFER_PARAMS, KEEP_FOR_DECODE),
            Connector::Sglang => splice.set(BOOTSTRAP_ROOM, room.to_string().as_bytes()),
        }
        merge(&self.prefill, splice.finish())
    }

    /// What changes in the body for the decode pod.
    #[must_use]
    pub fn decode(&self, handover: &Handover<'_>) -> Edits {
        let mut splice = self.members.splice();
        match handover {
            Handover::Nothing => {}
            Handover::Params(params) => splice.set(TRANSFER_PARAMS, params),
            Handover::Bootstrap { host, room } => {
                // Engines put a colon and a port behind it.
                let (open, close) = if host.contains(':') {
                    ("[", "]")
                } else {
                    ("", "")
                };
                let host = format!("\"{open}{host}{close}\"");
                splice.set(BOOTSTRAP_HOST, host.as_bytes());
                splice.set(BOOTSTRAP_ROOM, room.to_string().as_bytes());
            }
        }
        merge(&self.decode, splice.finish())
    }
}

/// A prefill pod's answer is not the JSON object that its connector promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the prefill answer is not a JSON object")]
pub struct NoTransferParams;

/// Where in a prefill pod's answer the value of `kv_transfer_params` is; `None` when it has none.
///
/// # Errors
/// The answer is not a JSON object.
pub fn transfer_params(answer: &[u8]) -> Result<Option<Range<usize>>, NoTransferParams> {
    let members = Members::of(answer).ok_or(NoTransferParams)?;
    Ok(members.get(TRANSFER_PARAMS).map(|value| value.range()))
}
