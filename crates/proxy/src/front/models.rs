//! `GET /v1/models` and `GET /v1/models/{id}`.

use crate::error::Refusal;
use bytes::Bytes;
use routing::fleet::Fleet;
use serde_json::{Value, json};

const PREFIX: &str = "/v1/models";

/// What a path under `/v1/models` asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listing {
    All,
    /// A model's name, decoded. Names may hold slashes.
    One(String),
}

impl Listing {
    pub(super) fn of(path: &str) -> Option<Self> {
        match path.strip_prefix(PREFIX)? {
            "" | "/" => Some(Self::All),
            rest => rest
                .strip_prefix('/')
                .map(|id| Self::One(percent_decode(id))),
        }
    }

    pub(super) fn answer(&self, fleet: &Fleet) -> Result<Bytes, Refusal> {
        let body = match self {
            Self::All => {
                let data: Vec<_> = fleet.models().iter().map(|id| entry(id)).collect();
                json!({"object": "list", "data": data})
            }
            Self::One(id) => entry(
                fleet
                    .known_model(id)
                    .ok_or_else(|| Refusal::NoSuchModel(id.clone()))?,
            ),
        };
        Ok(body.to_string().into())
    }
}

fn entry(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 0, "owned_by": "kthena"})
}

/// RFC 3986 percent-decoding; what is not an escape stays as it is.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_slashes_plain_or_escaped() {
        let one = |path: &str| Listing::of(path);
        assert_eq!(one("/v1/models"), Some(Listing::All));
        assert_eq!(one("/v1/models/a/b"), Some(Listing::One("a/b".into())));
        assert_eq!(
            one("/v1/models/%2Fdata%2fq3%"),
            Some(Listing::One("/data/q3%".into()))
        );
        assert_eq!(one("/v1/modelsx"), None);
    }
}
