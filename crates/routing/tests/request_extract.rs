//! What is read from a request, and why one is refused.

use routing::request::{Api, BadRequest, extract};

const CHAT: &str = "/v1/chat/completions";

fn model(body: &str) -> Result<String, BadRequest> {
    extract(CHAT, Some("application/json"), body.as_bytes()).map(|r| r.model.into_owned())
}

fn malformed(body: &[u8]) -> (usize, &'static str) {
    match extract(CHAT, None, body) {
        Err(BadRequest::Json { offset, expected }) => (offset, expected),
        other => unreachable!("{}: {other:?}", String::from_utf8_lossy(body)),
    }
}

#[test]
fn a6_paths_have_their_api_and_a_bounded_label() {
    assert_eq!(Api::of("/v1/chat/completions"), Api::Chat);
    assert_eq!(Api::of("/v1/completions"), Api::Completions);
    assert_eq!(Api::of("/v1/responses"), Api::Responses);
    assert_eq!(Api::of("/v1/messages"), Api::Messages);
    for path in [
        CHAT,
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/embeddings",
        "/v1/rerank",
        "/tokenize",
    ] {
        assert_eq!(Api::of(path).label(), path);
    }
    for path in [
        "",
        "/",
        "/v1/models/secret",
        "/v1/responses/r1",
        "/v1/chat/completions/",
        "/V1/CHAT/COMPLETIONS",
    ] {
        assert_eq!(Api::of(path).label(), "other", "{path}");
    }
}

#[test]
fn a6_the_last_top_level_model_counts_however_its_key_is_spelled() {
    assert_eq!(
        model(r#"{"model":"a","messages":[],"model":"b"}"#),
        Ok("b".into())
    );
    assert_eq!(model(r#"{"model":"a","mod\u0065l":"b"}"#), Ok("b".into()));
    assert_eq!(
        model(r#"{"model":"a","metadata":{"model":"b"},"list":[{"model":"c"}]}"#),
        Ok("a".into())
    );
    assert_eq!(
        model(r#"{"model":"a","model":null}"#),
        Err(BadRequest::ModelMissing)
    );
    assert_eq!(
        model(r#"{"model":"a","Model":"b","model ":"c","mode":"d","":"e"}"#),
        Ok("a".into())
    );
}

#[test]
fn a6_model_names_are_decoded_and_opaque() {
    for (spelled, name) in [
        (r"public\/alias", "public/alias"),
        ("modèle du café", "modèle du café"),
        (r"mod\u00e8le", "modèle"),
        (r#"say \"hi\"\\now"#, r#"say "hi"\now"#),
        (" padded ", " padded "),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        assert_eq!(
            model(&format!(r#"{{"model":"{spelled}"}}"#)),
            Ok(name.into()),
            "{spelled}"
        );
    }
}

#[test]
fn a6_a_model_that_is_absent_blank_or_no_string_is_not_found() {
    for body in [
        r#"{}"#,
        r#"{"model":null}"#,
        r#"{"model":7}"#,
        r#"{"model":""}"#,
        r#"{"model":" \t\u00a0"}"#,
        r#"{"model":["m"]}"#,
    ] {
        let error = model(body).expect_err(body);
        assert_eq!(
            (error.to_string().as_str(), error.status().as_u16()),
            ("model not found", 404),
            "{body}"
        );
    }
}

#[test]
fn a6_stream_is_only_the_boolean_true() {
    for (value, want) in [
        ("true", true),
        ("false", false),
        ("1", false),
        (r#""true""#, false),
        ("null", false),
    ] {
        let body = format!(r#"{{"model":"m","stream":{value}}}"#);
        assert_eq!(
            extract(CHAT, None, body.as_bytes()).expect(&body).stream,
            want,
            "{body}"
        );
    }
    let body = br#"{"model":"m","stream":true,"stream":false,"x":{"stream":true}}"#;
    assert!(!extract(CHAT, None, body).expect("valid").stream);
}

#[test]
fn a6_a_byte_order_mark_is_passed_over_and_counted_in_ranges() {
    let body = "\u{feff} {\"model\":\"m\"}";
    let request = extract(CHAT, None, body.as_bytes()).expect("valid");
    assert_eq!(request.model, "m");
    let edits = request.edits(Some("n"), false);
    assert_eq!(&body[edits[0].range.clone()], r#""m""#);
    assert_eq!(
        malformed("\u{feff}\u{feff}{}".as_bytes()).0,
        3,
        "one mark only"
    );
}

#[test]
fn a6_numbers_of_any_size_and_lone_surrogates_are_accepted() {
    for value in [
        "1e400",
        "-0",
        "12345678901234567890123",
        "1E+2",
        "0.30000000000000004",
        r#""\udfff""#,
        r#"{"\ud800":1}"#,
    ] {
        assert_eq!(
            model(&format!(r#"{{"model":"m","x":{value}}}"#)),
            Ok("m".into()),
            "{value}"
        );
    }
}

#[test]
fn a6_depth_has_no_limit() {
    let depth = 100_000;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let body = format!(
            r#"{{"x":{}1{},"model":"m"}}"#,
            open.repeat(depth),
            close.repeat(depth)
        );
        assert_eq!(model(&body), Ok("m".into()));
        let short = format!(
            r#"{{"x":{}1{},"model":"m"}}"#,
            open.repeat(depth),
            close.repeat(depth - 1)
        );
        assert!(model(&short).is_err(), "a bracket is missing");
    }
}

#[test]
fn a6_brackets_must_match_at_every_depth() {
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 200] {
        for wrong in 0..depth {
            let kind = |level: usize| level.is_multiple_of(3);
            let open: String = (0..depth)
                .map(|l| if kind(l) { r#"{"a":"# } else { "[" })
                .collect();
            let close = |flip: Option<usize>| -> String {
                (0..depth)
                    .rev()
                    .map(|l| {
                        if kind(l) != (flip == Some(l)) {
                            '}'
                        } else {
                            ']'
                        }
                    })
                    .collect()
            };
            assert_eq!(
                model(&format!(r#"{{"model":"m","x":{open}0{}}}"#, close(None))),
                Ok("m".into())
            );
            assert!(
                model(&format!(
                    r#"{{"model":"m","x":{open}0{}}}"#,
                    close(Some(wrong))
                ))
                .is_err(),
                "{depth} {wrong}"
            );
        }
    }
}

#[test]
fn a6_malformed_bodies_name_the_place_and_what_was_expected() {
    let cases: &[(&[u8], usize, &str)] = &[
        (b"", 0, "a value"),
        (b"  ", 2, "a value"),
        (b"{", 1, "a key or '}'"),
        (b"{\"model\":\"m\"", 12, "',' or '}'"),
        (b"{\"model\":\"m\",}", 13, "a key"),
        (b"{\"model\" \"m\"}", 9, "':'"),
        (b"{\"model\":}", 9, "a value"),
        (b"{model:1}", 1, "a key or '}'"),
        (b"{,}", 1, "a key or '}'"),
        (b"{\"a\":[1,]}", 8, "a value"),
        (b"{\"a\":[,1]}", 6, "a value"),
        (b"{\"a\":[1 2]}", 8, "',' or ']'"),
        (b"{\"a\":tru}", 5, "true"),
        (b"{\"a\":nul", 5, "null"),
        (b"{\"a\":False}", 5, "a value"),
        (b"{\"a\":NaN}", 5, "a value"),
        (b"{\"a\":01}", 6, "',' or '}'"),
        (b"{\"a\":-}", 6, "a digit"),
        (b"{\"a\":+1}", 5, "a value"),
        (b"{\"a\":1.}", 7, "a digit"),
        (b"{\"a\":.5}", 5, "a value"),
        (b"{\"a\":1e}", 7, "a digit"),
        (b"{\"a\":1e+}", 8, "a digit"),
        (b"{\"a\":\"x", 7, "the closing quote of a string"),
        (b"{\"a\":\"\\", 7, "an escape"),
        (b"{\"a\":\"\\x\"}", 7, "an escape"),
        (b"{\"a\":\"\\u12g4\"}", 10, "four hexadecimal digits"),
        (b"{\"a\":\"\\u12\"}", 10, "four hexadecimal digits"),
        (
            b"{\"a\":\"line\nbreak\"}",
            10,
            "no bare control character in a string",
        ),
        (b"{\"model\":\"m\"} x", 14, "the end of the document"),
        (b"{\"model\":\"m\"}{}", 13, "the end of the document"),
        (b"{\"model\":\"\xff\"}", 10, "UTF-8"),
        (b"{\"model\":\"\xed\xa0\x80\"}", 10, "UTF-8"),
        (b"{'model':'m'}", 1, "a key or '}'"),
        (b"{\"a\":1}\0", 7, "the end of the document"),
    ];
    for &(body, offset, expected) in cases {
        assert_eq!(
            malformed(body),
            (offset, expected),
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    let error = extract(CHAT, None, b"{\"a\":01}").expect_err("malformed");
    assert_eq!(
        error.to_string(),
        "the body is not valid JSON: expected ',' or '}' at byte 6"
    );
    assert_eq!(error.status().as_u16(), 400);
}

#[test]
fn a6_a_document_that_is_no_object_is_refused() {
    for body in ["[]", "1", "\"model\"", "null", " [{\"model\":\"m\"}] "] {
        let error = model(body).expect_err(body);
        assert_eq!(error, BadRequest::NotAnObject, "{body}");
        assert_eq!(error.status().as_u16(), 400);
    }
    assert_eq!(malformed(b"[1").0, 2);
}

#[test]
fn a6_strings_end_where_they_should_at_every_offset() {
    // Quotes, escapes and their ends move across every place in a block of the scanner.
    for pad in 0..140 {
        for tail in [
            "",
            r#"\""#,
            r"\\",
            r#"\\\""#,
            r"\u0041",
            r"\u005c",
            r#"\u0022x"#,
            r#"é\""#,
        ] {
            let body = format!(r#"{{"pad":"{}{tail}","model":"m{pad}"}}"#, "x".repeat(pad));
            assert_eq!(model(&body), Ok(format!("m{pad}")), "{body}");
            let value: serde_json::Value = serde_json::from_str(&body).expect("valid");
            let prompt = body.replace("\"pad\"", "\"prompt\"");
            let request = extract("/v1/completions", None, prompt.as_bytes()).expect("valid");
            assert_eq!(
                request.prompt.text(),
                value["pad"].as_str().expect("a string"),
                "{body}"
            );
            let bare = format!(
                "{{\"pad\":\"{}\u{1}{tail}\",\"model\":\"m\"}}",
                "x".repeat(pad)
            );
            assert_eq!(malformed(bare.as_bytes()).0, 8 + pad, "{bare}");
        }
    }
}
