//! The id of a request, from the client or made here; forwarded and logged.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Where it is.
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over, in bytes; more than two UUIDs and a trace id.
const MAX_ID: usize = 128;

/// The id of a request with these headers. One that is missing, or cannot be logged as it is, is replaced in them.
pub(super) fn take(headers: &mut HeaderMap) -> HeaderValue {
    let given = headers.get(X_REQUEST_ID).filter(|id| is_plain(id));
    given.cloned().unwrap_or_else(|| {
        let id = new_id();
        headers.insert(X_REQUEST_ID, id.clone());
        id
    })
}

/// Whether an id can be logged and passed on as it is: visible ASCII, and not too long.
fn is_plain(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn new_id() -> HeaderValue {
    let mut text = uuid::Uuid::encode_buffer();
    let id = crate::rand::request_id().hyphenated();
    HeaderValue::from_str(id.encode_lower(&mut text)).unwrap_or(HeaderValue::from_static("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_id_is_taken_over() {
        let plain = |id: &[u8]| is_plain(&HeaderValue::from_bytes(id).unwrap());
        assert!(plain(b"4a5e-1") && plain(b"req_{a=b}/\"c\"") && plain(&[b'x'; MAX_ID]));
        for id in [
            &b""[..],
            b"a b",
            b"a\tb",
            b"caf\xc3\xa9",
            &[b'x'; MAX_ID + 1],
        ] {
            assert!(!plain(id), "{id:?}");
        }
    }
}
