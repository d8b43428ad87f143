//! Where the key of a session is found, and where not.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use routing::fleet::KeySource;
use routing::session::{Claims, KeyParts, key};
use serde_json::json;
use std::borrow::Cow;

#[derive(Default)]
struct Sent {
    headers: HeaderMap,
    query: Option<String>,
    claims: Option<Claims>,
}

impl Sent {
    fn header(mut self, name: &'static str, value: &[u8]) -> Self {
        let value = HeaderValue::from_bytes(value).unwrap();
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    fn query(mut self, query: &str) -> Self {
        self.query = Some(query.into());
        self
    }

    fn claims(mut self, claims: serde_json::Value) -> Self {
        self.claims = claims.as_object().cloned();
        self
    }

    fn key(&self, sources: &[KeySource]) -> Option<Cow<'_, [u8]>> {
        let parts = KeyParts {
            headers: &self.headers,
            query: self.query.as_deref(),
            claims: self.claims.as_ref(),
        };
        key(sources, parts).map(|(_, key)| key)
    }

    fn text(&self, source: KeySource) -> Option<String> {
        let key = self.key(&[source])?;
        Some(String::from_utf8(key.into_owned()).unwrap())
    }
}

fn header(name: &str) -> KeySource {
    KeySource::Header(name.parse().unwrap())
}

fn cookie(name: &str) -> KeySource {
    KeySource::Cookie(name.into())
}

fn query(name: &str) -> KeySource {
    KeySource::Query(name.into())
}

fn claim(name: &str) -> KeySource {
    KeySource::Claim(name.into())
}

#[test]
fn j2_the_first_source_with_a_key_decides() {
    let all = [header("X-Session"), query("s"), cookie("s"), claim("sub")];
    let sent = || Sent::default().claims(json!({"sub": "c"}));
    assert_eq!(sent().key(&all).as_deref(), Some(&b"c"[..]));
    let sent = || sent().header("cookie", b"s=k");
    assert_eq!(sent().key(&all).as_deref(), Some(&b"k"[..]));
    let sent = || sent().query("s=q");
    assert_eq!(sent().key(&all).as_deref(), Some(&b"q"[..]));
    let blank = sent().header("x-session", b"  ");
    assert_eq!(blank.key(&all).as_deref(), Some(&b"q"[..]), "blank is none");
    let sent = sent().header("x-session", b" h\t");
    assert_eq!(sent.key(&all).as_deref(), Some(&b"h"[..]));
    assert_eq!(Sent::default().key(&all), None);
    assert_eq!(sent.key(&[]), None);
}

#[test]
fn headers_are_found_in_any_case_and_may_hold_any_byte() {
    let sent = Sent::default().header("x-session", b"\xff\x80");
    assert_eq!(
        sent.key(&[header("X-SESSION")]).as_deref(),
        Some(&b"\xff\x80"[..])
    );
    let twice = Sent::default()
        .header("x-session", b"")
        .header("x-session", b"b")
        .header("x-session", b"c");
    assert_eq!(twice.text(header("x-session")).as_deref(), Some("b"));
}

#[test]
fn cookies_are_told_apart_by_case_and_come_in_one_header_or_in_many() {
    let sent = Sent::default()
        .header("cookie", b"a=1; Session=no;session = yes ; b")
        .header("cookie", b"late=\"quoted\"; empty=; eq=a=b; late=second");
    for (name, value) in [
        ("session", Some("yes")),
        ("Session", Some("no")),
        ("SESSION", None),
        ("late", Some("quoted")),
        ("empty", None),
        ("eq", Some("a=b")),
        ("b", None),
        ("sess", None),
    ] {
        assert_eq!(sent.text(cookie(name)).as_deref(), value, "{name}");
    }
}

#[test]
fn queries_are_decoded_by_name_and_by_value() {
    for (text, value) in [
        ("session=x", Some("x")),
        ("a=1&session=x&session=y", Some("x")),
        ("session=&session=y", Some("y")),
        ("sess%69on=a%20b+c%2f", Some("a b c/")),
        ("session=100%", Some("100%")),
        ("session=%zz%4", Some("%zz%4")),
        ("session", None),
        ("session=+%20", None),
        ("Session=x", None),
        ("xsession=x", None),
        ("", None),
    ] {
        let sent = Sent::default().query(text);
        assert_eq!(sent.text(query("session")).as_deref(), value, "{text}");
    }
}

#[test]
fn claims_are_scalars() {
    let sent = Sent::default().claims(json!({
        "sub": " user ", "n": 12345678901234567890u64, "b": true, "list": ["x"], "o": {"k": "v"}, "null": null, "empty": "",
    }));
    for (name, value) in [
        ("sub", Some("user")),
        ("n", Some("12345678901234567890")),
        ("b", Some("true")),
        ("list", None),
        ("o", None),
        ("null", None),
        ("empty", None),
        ("absent", None),
    ] {
        assert_eq!(sent.text(claim(name)).as_deref(), value, "{name}");
    }
    let unchecked = Sent::default().header("authorization", b"Bearer a.b.c");
    assert_eq!(unchecked.text(claim("sub")), None, "only a validated token");
}

proptest! {
    #[test]
    fn what_was_encoded_reads_as_it_was(key in "[^\u{0}-\u{20} ]{1,40}", name in "[a-z&=%+]{1,8}") {
        let encode = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02X}")).collect() };
        let sent = Sent::default().query(&format!("A=b&{}={}&C", encode(&name), encode(&key)));
        let trimmed = key.trim_matches(|c: char| c.is_ascii_whitespace());
        let found = sent.text(query(&name));
        prop_assert_eq!(found.as_deref(), Some(trimmed).filter(|k| !k.is_empty()));
    }

    #[test]
    fn no_input_panics(raw in proptest::collection::vec(any::<u8>(), 0..60), name in "[a-z]{1,3}") {
        let text = String::from_utf8_lossy(&raw).into_owned();
        let value: Vec<u8> = raw.into_iter().filter(|b| *b >= 0x20 && *b != 0x7f).collect();
        let sent = Sent::default().header("cookie", &value).query(&text);
        let _ = (sent.key(&[cookie(&name)]), sent.key(&[query(&name)]));
    }
}
