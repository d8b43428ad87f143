//! What changes in a body on its way to a pod, and that nothing else does.

mod bodies;

use bodies::{Choices, path, request};
use proptest::prelude::*;
use routing::request::{apply, extract};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

fn edited(path: &str, body: &str, model: Option<&str>, usage: bool) -> String {
    let request = extract(path, None, body.as_bytes()).expect(body);
    String::from_utf8(apply(body.as_bytes(), &request.edits(model, usage))).expect("UTF-8")
}

#[test]
fn a6_exactly_the_bytes_of_the_model_value_are_replaced() {
    let body = r#"{ "stream" : false, "metadata":{"model":"keep-me"}, "model" : "public\/alias", "messages":[{"role":"user","content":"say \"model\":\"public/alias\" please"}], "seed":9007199254740993, "temperature":1.0 }"#;
    let want = body.replace(r#""model" : "public\/alias""#, r#""model" : "served-name""#);
    assert_eq!(edited(CHAT, body, Some("served-name"), false), want);
    assert_eq!(edited(CHAT, body, None, false), body);
    assert_eq!(
        edited(CHAT, body, Some("public/alias"), false),
        body,
        "an equal name keeps its spelling"
    );
}

#[test]
fn a6_the_last_of_duplicate_models_is_replaced() {
    let body = r#"{"model":"cheap","messages":[],"mod\u0065l":"alias","x":1}"#;
    let want = r#"{"model":"cheap","messages":[],"mod\u0065l":"real","x":1}"#;
    assert_eq!(edited(CHAT, body, Some("real"), false), want);
}

#[test]
fn a6_a_new_name_is_escaped() {
    let name = "a\"b\\c\n\u{1}é/😀";
    let body = edited(CHAT, r#"{"model":"m"}"#, Some(name), false);
    assert_eq!(
        serde_json::from_str::<Value>(&body).expect("JSON"),
        json!({"model": name})
    );
}

#[test]
fn usage_is_asked_for_in_streams_of_chat_and_completions_only() {
    let body = r#"{"model":"m","stream":true,"messages":[]  }"#;
    let want =
        r#"{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":true}  }"#;
    assert_eq!(edited(CHAT, body, None, true), want);
    assert_eq!(edited("/v1/completions", body, None, true), want);
    assert_eq!(edited(CHAT, body, None, false), body, "nobody wants it");
    for path in ["/v1/responses", "/v1/messages", "/v1/embeddings"] {
        assert_eq!(edited(path, body, None, true), body, "{path}");
    }
    for stream in ["false", "null", "1", "\"true\""] {
        let body = format!(r#"{{"model":"m","stream":{stream}}}"#);
        assert_eq!(edited(CHAT, &body, None, true), body, "no stream");
    }
}

#[test]
fn usage_keeps_the_other_stream_options() {
    for (options, want) in [
        (r#"{}"#, r#"{"include_usage":true}"#),
        (r#"{ }"#, r#"{"include_usage":true }"#),
        (r#"{"a":1 }"#, r#"{"a":1,"include_usage":true }"#),
        (
            r#"{"include_usage" : false, "a":[1.0]}"#,
            r#"{"include_usage" : true, "a":[1.0]}"#,
        ),
        (r#"{"include_usage":null}"#, r#"{"include_usage":true}"#),
        (
            r#"{"include_\u0075sage":0}"#,
            r#"{"include_\u0075sage":true}"#,
        ),
        (
            r#"{"include_usage":true,"include_usage":false}"#,
            r#"{"include_usage":true,"include_usage":true}"#,
        ),
        ("null", r#"{"include_usage":true}"#),
        (r#"{"include_usage":true}"#, r#"{"include_usage":true}"#),
        (
            r#"{"include_usage":false,"include_usage":true}"#,
            r#"{"include_usage":false,"include_usage":true}"#,
        ),
        ("7", "7"),
        (r#"["include_usage"]"#, r#"["include_usage"]"#),
        (r#""include_usage""#, r#""include_usage""#),
    ] {
        let body =
            |options: &str| format!(r#"{{"stream_options":{options},"model":"m","stream":true}}"#);
        assert_eq!(
            edited(CHAT, &body(options), None, true),
            body(want),
            "{options}"
        );
    }
}

#[test]
fn usage_counts_as_wanted_only_when_the_client_says_true() {
    for (options, want) in [
        (r#","stream_options":{"include_usage":true}"#, true),
        (r#","stream_options":{"include_usage":false}"#, false),
        (
            r#","stream_options":{"include_usage":true},"stream_options":null"#,
            false,
        ),
        (r#","x":{"include_usage":true}"#, false),
        ("", false),
    ] {
        let body = format!(r#"{{"model":"m","stream":true{options}}}"#);
        assert_eq!(
            extract(CHAT, None, body.as_bytes())
                .expect(&body)
                .wants_usage(),
            want,
            "{body}"
        );
    }
}

#[test]
fn both_edits_come_in_order_wherever_the_members_are() {
    let front = r#"{"stream_options":null,"stream":true,"model":"m"}"#;
    assert_eq!(
        edited(CHAT, front, Some("n"), true),
        r#"{"stream_options":{"include_usage":true},"stream":true,"model":"n"}"#
    );
    let last = r#"{"stream":true,"model":"m"}"#;
    assert_eq!(
        edited(CHAT, last, Some("n"), true),
        r#"{"stream":true,"model":"n","stream_options":{"include_usage":true}}"#
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a6_a_parser_sees_only_the_wanted_changes(
        body in request("alias"), path in path(), seed: u64, name in bodies::text(), usage: bool
    ) {
        let spelled = body.spell(&mut Choices(seed));
        let found = extract(path, None, spelled.as_bytes()).expect(&spelled);
        let edits = found.edits(Some(&name), usage);
        prop_assert!(edits.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start), "{:?}", edits);
        let after = apply(spelled.as_bytes(), &edits);
        let mut want: Value = serde_json::from_str(&spelled).expect("the generator writes JSON");
        prop_assert_eq!(found.wants_usage(), want["stream_options"]["include_usage"] == true);
        want["model"] = json!(name);
        let has_options = path == CHAT || path == "/v1/completions";
        let fits = want["stream_options"].is_null() || want["stream_options"].is_object();
        if usage && has_options && fits && want["stream"] == true {
            want["stream_options"]["include_usage"] = json!(true);
        }
        let after: Value = serde_json::from_slice(&after).expect("still JSON");
        prop_assert_eq!(normal(after), normal(want), "{}", spelled);
    }
}

/// Indexing a value that is not there makes a `null` of it; here that is the same as its absence.
fn normal(mut body: Value) -> Value {
    let members = body.as_object_mut().expect("an object");
    if members.get("stream_options").is_some_and(Value::is_null) {
        members.remove("stream_options");
    }
    if members.get("stream").is_some_and(Value::is_null) {
        members.remove("stream");
    }
    body
}
