//! The key of a request's session: the first place that has one decides.
//!
//! A key is bytes: whatever a client sends under the name, without the white space around it. It is only compared,
//! and never shown.

use crate::fleet::KeySource;
use http::header::COOKIE;
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Claims of a validated token.
pub type Claims = Map<String, Value>;

/// Where keys are looked for.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The URL's query, without the question mark.
    pub query: Option<&'a str>,
    /// The claims of the request's token, if it was validated.
    pub claims: Option<&'a Claims>,
}

/// The first key that is not blank, in the order of the sources, and its source.
#[must_use]
pub fn key<'a, 's>(
    sources: &'s [KeySource],
    parts: KeyParts<'a>,
) -> Option<(&'s KeySource, Cow<'a, [u8]>)> {
    sources.iter().find_map(|source| {
        let key = match source {
            KeySource::Header(name) => header(parts.headers, name).map(Cow::Borrowed),
            KeySource::Query(name) => query(parts.query?, name.as_bytes()),
            KeySource::Cookie(name) => cookie(parts.headers, name.as_bytes()).map(Cow::Borrowed),
            KeySource::Claim(name) => claim(parts.claims?, name),
        };
        Some((source, key?))
    })
}

fn present(text: &[u8]) -> Option<&[u8]> {
    Some(text.trim_ascii()).filter(|text| !text.is_empty())
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    values.find_map(|value| present(value.as_bytes()))
}

/// RFC 6265, section 4.2. HTTP/2 clients may send each pair in a header of its own.
fn cookie<'a>(headers: &'a HeaderMap, name: &[u8]) -> Option<&'a [u8]> {
    let values = headers.get_all(COOKIE).iter();
    let mut pairs = values.flat_map(|value| value.as_bytes().split(|&b| b == b';'));
    pairs.find_map(|pair| {
        let at = pair.iter().position(|&b| b == b'=')?;
        let (found, value) = (&pair[..at], pair[at + 1..].trim_ascii());
        let quoted = value
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        (found.trim_ascii() == name)
            .then(|| present(quoted.unwrap_or(value)))
            .flatten()
    })
}

/// The form encoding of queries (WHATWG URL, section 5.1): `+` is a space, `%XX` a byte.
fn query<'a>(query: &'a str, name: &[u8]) -> Option<Cow<'a, [u8]>> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        if *decode(found) != *name {
            return None;
        }
        match decode(value) {
            Cow::Borrowed(value) => present(value).map(Cow::Borrowed),
            Cow::Owned(value) => present(&value).map(|value| Cow::Owned(value.to_vec())),
        }
    })
}

/// A text in the form encoding of queries, as it reads; what is no UTF-8 is replaced.
#[must_use]
pub fn form_decoded(text: &str) -> Cow<'_, str> {
    match decode(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn decode(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|b| matches!(b, b'+' | b'%')) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    rest = after;
                }
                _ => out.push(b'%'),
            },
            (other, _) => out.push(*other),
        }
    }
    Cow::Owned(out)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|d| d.try_into().ok())
}

/// Text as it is, numbers and truth values as they are written. Lists and objects are no keys.
fn claim<'a>(claims: &'a Claims, name: &str) -> Option<Cow<'a, [u8]>> {
    match claims.get(name)? {
        Value::String(text) => present(text.as_bytes()).map(Cow::Borrowed),
        scalar @ (Value::Number(_) | Value::Bool(_)) => {
            Some(Cow::Owned(scalar.to_string().into_bytes()))
        }
        _ => None,
    }
}
