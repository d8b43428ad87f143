//! Reading a request body, bounded in size and in waiting.

use super::decode::SET_ASIDE;
use crate::error::Refusal;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::error::Error;
use std::io;
use std::time::Duration;

/// Longest silence of a client in the middle of its body.
const STALL: Duration = Duration::from_secs(60);
/// How long the rest of a refused body is read, so that the client, still sending, gets to see the answer instead of a
/// reset connection.
const LINGER: Duration = Duration::from_secs(2);

/// Reads the whole body.
pub(crate) async fn read_body(mut body: Incoming, limit: usize) -> Result<Bytes, Refusal> {
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        linger(body);
        return Err(Refusal::TooLarge { limit });
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let frame = match tokio::time::timeout(STALL, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) if is_end(&error) => return Err(Refusal::ClientLeft),
            Ok(Some(Err(error))) => return Err(Refusal::BrokenBody(error.to_string())),
            Err(_) => return Err(Refusal::StalledBody(STALL.as_secs())),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len() + rest.len() + data.len() > limit {
            linger(body);
            return Err(Refusal::TooLarge { limit });
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                // Set aside in one piece on the word of `Content-Length`, which is within the limit: pages
                // that never arrive are never touched, and a body that arrives is not copied as it grows.
                let announced = usize::try_from(announced).unwrap_or(0).min(SET_ASIDE);
                rest.reserve(announced.max(first.len() + data.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

/// Whether the connection ended inside the body, as opposed to a body that cannot be read.
fn is_end(error: &hyper::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind::{InvalidData, InvalidInput};
            return !matches!(error.kind(), InvalidData | InvalidInput);
        }
        cause = error.source();
    }
    false
}

/// Reads on for a while what nobody needs.
pub(super) fn linger(mut body: Incoming) {
    tokio::spawn(tokio::time::timeout(LINGER, async move {
        while let Some(Ok(_)) = body.frame().await {}
    }));
}
