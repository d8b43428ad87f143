//! The scanner accepts what another strict parser accepts, and nothing else.

mod bodies;

use bodies::{Choices, document, request};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use routing::request::{BadRequest, extract};
use serde::de::IgnoredAny;

fn accepted(body: &[u8]) -> bool {
    !matches!(
        extract("/v1/chat/completions", None, body),
        Err(BadRequest::Json { .. })
    )
}

/// serde_json without building values: no limit of depth or number size, lone surrogates pass.
fn oracle(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body)
        .ok()
        .map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
    text.is_some_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// What becomes of a byte of a valid document.
#[derive(Clone, Debug)]
enum Change {
    Delete,
    Put(u8),
    Insert(u8),
    Cut,
}

fn change() -> impl Strategy<Value = Change> {
    let byte =
        || prop_oneof![4 => select(&br#"{}[],:"\0123456789eE+-.ntfuabr/ "#[..]), 1 => any::<u8>()];
    prop_oneof![
        Just(Change::Delete),
        byte().prop_map(Change::Put),
        byte().prop_map(Change::Insert),
        Just(Change::Cut)
    ]
}

fn changed(mut body: Vec<u8>, changes: &[(usize, Change)]) -> Vec<u8> {
    for (place, change) in changes {
        if body.is_empty() {
            return body;
        }
        let place = place % body.len();
        match change {
            Change::Delete => drop(body.remove(place)),
            Change::Put(byte) => body[place] = *byte,
            Change::Insert(byte) => body.insert(place, *byte),
            Change::Cut => body.truncate(place),
        }
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a6_valid_documents_are_accepted(body in prop_oneof![document().boxed(), request("m").boxed()], seed: u64) {
        let spelled = body.spell(&mut Choices(seed));
        prop_assert!(oracle(spelled.as_bytes()), "{}", spelled);
        prop_assert!(accepted(spelled.as_bytes()), "{}", spelled);
    }

    #[test]
    fn a6_changed_documents_are_judged_alike(
        body in request("m"), seed: u64, changes in vec((any::<usize>(), change()), 1..4)
    ) {
        let body = changed(body.spell(&mut Choices(seed)).into_bytes(), &changes);
        prop_assert_eq!(accepted(&body), oracle(&body), "{}", String::from_utf8_lossy(&body));
    }

    #[test]
    fn a6_token_soup_is_judged_alike(tokens in vec(select(vec![
        "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "\\u12", "\\n", "1", "-", "0", ".5", "e9", "null", "true",
        "fals", " ", "\n", "\u{feff}", "é", "\u{1}", "\"\\ud83d\"", "{\"a\":", "[1,",
    ]), 0..12)) {
        let body = tokens.concat();
        prop_assert_eq!(accepted(body.as_bytes()), oracle(body.as_bytes()), "{}", body);
    }

    #[test]
    fn a6_bytes_are_judged_alike(body in vec(any::<u8>(), 0..40)) {
        prop_assert_eq!(accepted(&body), oracle(&body), "{:?}", body);
    }
}
