//! The bodies of both legs: exactly the bytes that must change, and to a JSON parser exactly the members.

mod bodies;

use bodies::{Choices, Json, path, request};
use proptest::prelude::*;
use routing::pd::{Connector, Handover, NoTransferParams, Split, transfer_params};
use routing::request::{Edits, apply, extract};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const ALL: [Connector; 5] = [
    Connector::Http,
    Connector::LmCache,
    Connector::Nixl,
    Connector::Mooncake,
    Connector::Sglang,
];
const ROOM: u64 = (1 << 63) - 1;
/// What a prefill pod handed over, with numbers that floating point cannot hold.
const PARAMS: &str =
    r#"{ "do_remote_prefill":true,"remote_block_ids":[18446744073709551615, 1.0],"x":1e400 }"#;

fn split(
    connector: Connector,
    path: &str,
    body: &str,
    then: impl Fn(&Split<'_>) -> Edits,
) -> String {
    let request = extract(path, None, body.as_bytes()).expect(body);
    let split = Split::new(connector, &request, body.as_bytes(), None, false).expect(body);
    String::from_utf8(apply(body.as_bytes(), &then(&split))).expect("UTF-8")
}

fn prefill(connector: Connector, body: &str) -> String {
    split(connector, CHAT, body, |split| split.prefill(ROOM))
}

#[test]
fn j3_the_prefill_leg_asks_for_one_token_at_once() {
    for (body, want) in [
        (r#"{"model":"m"}"#, r#"{"model":"m","max_tokens":1}"#),
        (
            r#"{ "model" : "m" , "stream" : true , "stream_options" : {"include_usage":true} }"#,
            r#"{ "model" : "m","max_tokens":1 }"#,
        ),
        (
            r#"{"stream":true, "model":"m", "max_tokens" : 100 , "seed":9007199254740993}"#,
            r#"{"model":"m", "max_tokens" : 1 , "seed":9007199254740993}"#,
        ),
        (
            r#"{"stream":true,"stream_options":null,"model":"m","max_completion_tokens":7,"min_tokens":5}"#,
            r#"{"model":"m","max_completion_tokens":1,"min_tokens":1,"max_tokens":1}"#,
        ),
        (
            r#"{"model":"m","max_completion_tokens":null,"stream":false,"min_tokens":1,"max_tokens":null}"#,
            r#"{"model":"m","max_completion_tokens":null,"min_tokens":1,"max_tokens":1}"#,
        ),
        (
            r#"{"model":"m","min_tokens":"3","str\u0065am":true,"x":{"stream":true,"max_tokens":9}}"#,
            r#"{"model":"m","min_tokens":1,"x":{"stream":true,"max_tokens":9},"max_tokens":1}"#,
        ),
        (
            r#"{"max_tokens":5,"stream":true,"model":"m","stream":false,"max_tokens":6}"#,
            r#"{"max_tokens":1,"model":"m","max_tokens":1}"#,
        ),
        (
            "\u{feff}{\"stream\":true,\"model\":\"m\",\"min_tokens\":0.5}\n",
            "\u{feff}{\"model\":\"m\",\"min_tokens\":0.5,\"max_tokens\":1}\n",
        ),
    ] {
        assert_eq!(prefill(Connector::Http, body), want, "{body}");
        assert_eq!(prefill(Connector::LmCache, body), want, "{body}");
    }
}

#[test]
fn j3_what_each_connector_adds_to_the_prefill_leg() {
    let body = r#"{"model":"m","max_tokens":9}"#;
    let remote = r#"{"model":"m","max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false}}"#;
    assert_eq!(prefill(Connector::Nixl, body), remote);
    assert_eq!(prefill(Connector::Mooncake, body), remote);
    assert_eq!(
        prefill(Connector::Sglang, body),
        r#"{"model":"m","max_tokens":1,"bootstrap_room":9223372036854775807}"#
    );
    let own = r#"{"kv_transfer_params":{"mine":1},"model":"m","max_tokens":9}"#;
    assert_eq!(
        prefill(Connector::Nixl, own),
        r#"{"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false},"model":"m","max_tokens":1}"#
    );
}

#[test]
fn j3_the_decode_leg_is_the_clients_body_and_what_was_handed_over() {
    let body = r#"{"model":"m", "stream":true, "max_tokens":9, "min_tokens":5 }"#;
    let decode = |connector, handover: Handover<'_>| {
        split(connector, CHAT, body, |split| split.decode(&handover))
    };
    assert_eq!(decode(Connector::Http, Handover::Nothing), body);
    assert_eq!(
        decode(Connector::Nixl, Handover::Params(PARAMS.as_bytes())),
        format!(
            r#"{{"model":"m", "stream":true, "max_tokens":9, "min_tokens":5,"kv_transfer_params":{PARAMS} }}"#
        )
    );
    for (host, spelled) in [("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]")] {
        let room = 9_007_199_254_740_993;
        assert_eq!(
            decode(Connector::Sglang, Handover::Bootstrap { host, room }),
            format!(
                r#"{{"model":"m", "stream":true, "max_tokens":9, "min_tokens":5,"bootstrap_host":"{spelled}","bootstrap_room":9007199254740993 }}"#
            )
        );
    }
}

#[test]
fn j3_a_response_is_limited_by_the_name_that_its_api_has() {
    let body = r#"{"model":"m","input":"x"}"#;
    assert_eq!(
        split(Connector::Http, "/v1/responses", body, |s| s.prefill(0)),
        r#"{"model":"m","input":"x","max_tokens":1,"max_output_tokens":1}"#
    );
    let body = r#"{"model":"m","input":"x","max_output_tokens":900}"#;
    assert_eq!(
        split(Connector::Http, "/v1/responses", body, |s| s.prefill(0)),
        r#"{"model":"m","input":"x","max_output_tokens":1,"max_tokens":1}"#
    );
    assert_eq!(
        prefill(Connector::Http, body),
        body.replace("900}", r#"900,"max_tokens":1}"#)
    );
}

#[test]
fn j3_both_legs_ask_for_the_mapped_model_and_decode_alone_for_usage() {
    let body = r#"{"stream":true,"model":"alias"}"#;
    let request = extract(CHAT, None, body.as_bytes()).expect("a request");
    let split = Split::new(
        Connector::Nixl,
        &request,
        body.as_bytes(),
        Some("real"),
        true,
    )
    .expect("an object");
    let apply = |edits: Edits| String::from_utf8(apply(body.as_bytes(), &edits)).expect("UTF-8");
    assert_eq!(
        apply(split.prefill(0)),
        r#"{"model":"real","max_tokens":1,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false}}"#
    );
    assert_eq!(
        apply(split.decode(&Handover::Params(b"null"))),
        r#"{"stream":true,"model":"real","stream_options":{"include_usage":true},"kv_transfer_params":null}"#
    );
}

#[test]
fn a_form_cannot_be_split() {
    let body = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let kind = Some("multipart/form-data; boundary=b");
    let request = extract("/v1/audio/transcriptions", kind, body.as_bytes()).expect("a form");
    assert!(Split::new(Connector::Http, &request, body.as_bytes(), None, false).is_none());
}

#[test]
fn j3_transfer_params_are_taken_as_they_are_spelled() {
    let found = |answer: &str| {
        transfer_params(answer.as_bytes()).map(|range| range.map(|r| answer[r].to_owned()))
    };
    let answer = format!(
        r#"{{"choices":[{{"kv_transfer_params":1}}], "kv_transfer_params" : {PARAMS} ,"usage":null}}"#
    );
    assert_eq!(found(&answer), Ok(Some(PARAMS.to_owned())));
    assert_eq!(
        found(r#"{"kv_transfer_params":null}"#),
        Ok(Some("null".to_owned()))
    );
    assert_eq!(found(r#"{"id":"x"}"#), Ok(None));
    assert_eq!(found("{}"), Ok(None));
    for bad in ["", "[]", "null", r#"{"id":"x""#, "data: {}", "\"{}\""] {
        assert_eq!(found(bad), Err(NoTransferParams), "{bad}");
    }
}

/// Members that a leg may have to change, some of them twice.
fn touched() -> impl Strategy<Value = Vec<(String, Json)>> {
    let value = prop_oneof![
        proptest::sample::select(vec![
            "1",
            "0",
            "-1",
            "7",
            "5.0",
            "1e3",
            "null",
            "true",
            "false",
            "9007199254740993"
        ])
        .prop_map(|w| Json::Word(w.to_owned())),
        bodies::document(),
    ];
    let name = proptest::sample::select(vec![
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "min_tokens",
        "kv_transfer_params",
        "bootstrap_room",
        "bootstrap_host",
    ]);
    proptest::collection::vec((name.prop_map(str::to_owned), value), 0..10)
}

/// The same change of the parsed body.
fn oracle_prefill(connector: Connector, path: &str, body: &mut Value) {
    let members = body.as_object_mut().expect("an object");
    members.remove("stream");
    members.remove("stream_options");
    members.insert("max_tokens".into(), json!(1));
    if members
        .get("max_completion_tokens")
        .is_some_and(|v| !v.is_null())
    {
        members.insert("max_completion_tokens".into(), json!(1));
    }
    if path == "/v1/responses" {
        members.insert("max_output_tokens".into(), json!(1));
    }
    let least = members.get("min_tokens").and_then(|v| match v {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    });
    if least.is_some_and(|n| n > 1.0) {
        members.insert("min_tokens".into(), json!(1));
    }
    match connector {
        Connector::Http | Connector::LmCache => {}
        Connector::Nixl | Connector::Mooncake => {
            let value = json!({"do_remote_decode": true, "do_remote_prefill": false});
            members.insert("kv_transfer_params".into(), value);
        }
        Connector::Sglang => {
            members.insert("bootstrap_room".into(), json!(ROOM));
        }
    }
}

/// The bytes that the edits keep are the body's, in order.
fn sound(body: &str, edits: &Edits) -> Result<(), TestCaseError> {
    let in_order = edits
        .windows(2)
        .all(|pair| pair[0].range.end <= pair[1].range.start);
    prop_assert!(in_order, "{:?}", edits);
    prop_assert!(edits.iter().all(|e| e.range.end <= body.len()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn j3_a_parser_sees_only_the_wanted_changes(
        base in request("m"),
        more in touched(),
        at: prop::sample::Index,
        seed: u64,
        path in path(),
        connector in prop::sample::select(ALL.to_vec()),
    ) {
        let Json::Object(mut members) = base else { unreachable!("a request is an object") };
        let place = at.index(members.len() + 1);
        for (n, member) in more.into_iter().enumerate() {
            members.insert((place + n * 3).min(members.len()), member);
        }
        let body = Json::Object(members).spell(&mut Choices(seed));
        let found = extract(path, None, body.as_bytes()).expect(&body);
        let split = Split::new(connector, &found, body.as_bytes(), None, false).expect(&body);

        let edits = split.prefill(ROOM);
        sound(&body, &edits)?;
        let after: Value = serde_json::from_slice(&apply(body.as_bytes(), &edits)).expect("still JSON");
        let mut want: Value = serde_json::from_str(&body).expect("the generator writes JSON");
        oracle_prefill(connector, path, &mut want);
        prop_assert_eq!(after, want, "{}", body);

        for (handover, changes) in [
            (Handover::Nothing, json!({})),
            (Handover::Params(b"{\"a\":[1]}"), json!({"kv_transfer_params": {"a": [1]}})),
            (
                Handover::Bootstrap { host: "h", room: 5 },
                json!({"bootstrap_host": "h", "bootstrap_room": 5}),
            ),
        ] {
            let edits = split.decode(&handover);
            sound(&body, &edits)?;
            let after: Value = serde_json::from_slice(&apply(body.as_bytes(), &edits)).expect("still JSON");
            let mut want: Value = serde_json::from_str(&body).expect("the generator writes JSON");
            for (name, value) in changes.as_object().expect("an object") {
                want[name.as_str()] = value.clone();
            }
            prop_assert_eq!(after, want, "{}", body);
        }
    }
}
