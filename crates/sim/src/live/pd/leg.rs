//! One leg of a request on a disaggregated engine.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Disaggregation, PdConnector, PdRole,
    claim::claim,
    transfers::{Room, Transfers},
};
use crate::live::api::{ApiError, Generate};

/// Longest wait of a prefill engine for the decode engine to come to its room.
const GUEST_PATIENCE: Duration = Duration::from_secs(30);

/// A prefill leg under way; ended by [`Leg::finish`].
#[derive(Debug)]
pub(in crate::live) struct Leg(Kind);

#[derive(Debug)]
enum Kind {
    /// Nothing is handed over.
    Plain,
    /// The prompt is kept for a decode that comes later.
    Keep { digest: u64 },
    /// The decode comes while this goes on.
    Room(Room),
}

impl Leg {
    /// Checks that a request is what the engine's role takes. A decode engine takes the cache over here.
    pub(in crate::live) async fn begin(
        part: &Disaggregation,
        transfers: &Arc<Transfers>,
        body: &[u8],
        request: &mut Generate,
    ) -> Result<Self, ApiError> {
        let fields: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let kind = match part.role {
            PdRole::Prefill => prefill(part.connector, transfers, &fields, request)?,
            PdRole::Decode => {
                decode(part, &fields, request).await?;
                Kind::Plain
            }
        };
        Ok(Self(kind))
    }

    /// The answer is complete: adds what the decode engine must be told, or waits for it to come.
    pub(in crate::live) async fn finish(
        self,
        transfers: &Transfers,
        key: u64,
        address: std::net::SocketAddr,
        answer: &mut Value,
    ) -> Result<(), ApiError> {
        match self.0 {
            Kind::Plain => Ok(()),
            Kind::Keep { digest } => {
                transfers.keep(key, digest);
                answer["kv_transfer_params"] = json!({
                    "do_remote_prefill": true, "do_remote_decode": false, "remote_engine_id": "sim",
                    "remote_block_ids": [key], "remote_host": address.ip().to_string(), "remote_port": address.port(),
                    "tp_size": 1,
                });
                Ok(())
            }
            Kind::Room(room) => match room.hand_over(GUEST_PATIENCE).await {
                true => Ok(()),
                false => Err(failed("no decode engine came to the room")),
            },
        }
    }
}

fn prefill(
    connector: PdConnector,
    transfers: &Arc<Transfers>,
    fields: &Map<String, Value>,
    request: &Generate,
) -> Result<Kind, ApiError> {
    if request.stream || !request.is_one_token() {
        return Err(refused(
            "a prefill engine generates one token, and no stream",
        ));
    }
    let digest = request.digest();
    match connector {
        PdConnector::Http => Ok(Kind::Plain),
        PdConnector::Nixl => {
            let params = fields.get("kv_transfer_params").unwrap_or(&Value::Null);
            if params["do_remote_decode"] != true || params["do_remote_prefill"] != false {
                return Err(refused("kv_transfer_params do not say do_remote_decode"));
            }
            Ok(Kind::Keep { digest })
        }
        PdConnector::Sglang => {
            let room = room(fields)?;
            let room = transfers.open(room, digest);
            Ok(Kind::Room(
                room.ok_or_else(|| refused("the room is in use"))?,
            ))
        }
    }
}

async fn decode(
    part: &Disaggregation,
    fields: &Map<String, Value>,
    request: &mut Generate,
) -> Result<(), ApiError> {
    let port = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
    let digest = request.digest();
    let claimed = match part.connector {
        PdConnector::Http => return Ok(()),
        PdConnector::Nixl => {
            let params = fields.get("kv_transfer_params").unwrap_or(&Value::Null);
            let (Some(host), Some(port), Some(key), Some(true)) = (
                params["remote_host"].as_str(),
                port(&params["remote_port"]),
                params["remote_block_ids"][0].as_u64(),
                params["do_remote_prefill"].as_bool(),
            ) else {
                return Err(refused(
                    "kv_transfer_params do not name a prefill that was done",
                ));
            };
            claim(host, port, key, digest, false).await
        }
        PdConnector::Sglang => {
            let host = fields.get("bootstrap_host").and_then(Value::as_str);
            let host = host.ok_or_else(|| refused("a decode engine needs bootstrap_host"))?;
            let port = fields.get("bootstrap_port").and_then(port);
            let port = port.unwrap_or(part.bootstrap_port);
            claim(host, port, room(fields)?, digest, true).await
        }
    };
    claimed.map_err(|why| failed(&format!("the KV cache did not arrive: {why}")))?;
    request.transferred = true;
    Ok(())
}

fn room(fields: &Map<String, Value>) -> Result<u64, ApiError> {
    let room = fields.get("bootstrap_room").and_then(Value::as_i64);
    room.and_then(|room| u64::try_from(room).ok())
        .ok_or_else(|| refused("bootstrap_room must be a number from 0 to 2^63 - 1"))
}

/// The request is not what this engine takes.
fn refused(why: &str) -> ApiError {
    ApiError::bad_request(why, None)
}

/// The other engine did not do its part.
fn failed(why: &str) -> ApiError {
    ApiError::transfer(StatusCode::INTERNAL_SERVER_ERROR, why)
}
