//! The rendered prompt of every API, rule by rule.

use routing::request::extract;
use std::ops::ControlFlow;

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

fn text(path: &str, body: &str) -> String {
    extract(path, Some("application/json"), body.as_bytes())
        .expect(body)
        .prompt
        .text()
}

fn bytes(path: &str, body: &str) -> Vec<u8> {
    extract(path, None, body.as_bytes())
        .expect(body)
        .prompt
        .bytes()
}

fn turns(turns: &[(&str, &str)]) -> String {
    turns
        .iter()
        .map(|(role, content)| format!("<|im_start|>{role}\n{content}<|im_end|>\n"))
        .collect()
}

#[test]
fn a1_completion_prompt_is_the_string_as_it_is() {
    let body = r#"{"model":"base","prompt":"\n  def f(x):\r\n\treturn  x \n\n","suffix":"end"}"#;
    assert_eq!(text(COMPLETIONS, body), "\n  def f(x):\r\n\treturn  x \n\n");
    assert_eq!(text(COMPLETIONS, r#"{"model":"base","prompt":""}"#), "");
}

#[test]
fn a2_chat_messages_are_rendered_in_request_order() {
    let body = r#"{"model":"m","messages":[{"role":"developer","content":"Use SI."},{"content":"Speed?","role":"user"},
        {"role":"","content":"nobody"},{"role":"tool","content":"{\"c\":7}"}]}"#;
    let want = turns(&[
        ("developer", "Use SI."),
        ("user", "Speed?"),
        ("", "nobody"),
        ("tool", "{\"c\":7}"),
    ]);
    assert_eq!(text(CHAT, body), want);
    assert_eq!(text(MESSAGES, body), want);
}

#[test]
fn a2_other_members_of_a_chat_request_are_no_part_of_the_prompt() {
    let body = r#"{"model":"m","prompt":"p","input":"i","instructions":"n","messages":[{"role":"user","content":"hi"}]}"#;
    assert_eq!(text(CHAT, body), turns(&[("user", "hi")]));
}

#[test]
fn a3_system_field_comes_first_whatever_its_place() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"u"},{"role":"system","content":"S1"}],"system":"S0"}"#;
    assert_eq!(
        text(CHAT, body),
        turns(&[("system", "S0"), ("user", "u"), ("system", "S1")])
    );
    let body = r#"{"model":"m","system":[{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"b"}],
        "messages":[{"role":"user","content":"u"}]}"#;
    assert_eq!(
        text(MESSAGES, body),
        turns(&[("system", "a\nb"), ("user", "u")])
    );
    assert_eq!(
        text(CHAT, r#"{"model":"m","system":null,"messages":[]}"#),
        ""
    );
    assert_eq!(
        text(
            CHAT,
            r#"{"model":"m","system":{"text":"no"},"messages":[]}"#
        ),
        ""
    );
}

#[test]
fn a4_known_parts_are_joined_and_others_skipped() {
    let body = r#"{"model":"m","messages":[
        {"role":"user","content":[{"type":"text","text":"A"},{"type":"text","text":null},{"type":"text"},
            {"type":"hologram","text":"no"},{"text":"B","type":"output_text"},{"type":"image_url","image_url":{"url":"x"}}]},
        {"role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]},
        {"role":"user","content":["bare",7,null,["x"],{"type":"input_text","text":"C"},{"text":"D"},{"type":null,"text":"E"},
            {"type":7,"text":"no"},{"type":"","text":"no"}]}]}"#;
    assert_eq!(
        text(CHAT, body),
        turns(&[("user", "A\nB"), ("assistant", ""), ("user", "C\nD\nE")])
    );
}

#[test]
fn a4_the_last_of_duplicate_members_of_a_part_counts() {
    let body = r#"{"model":"m","messages":[{"role":"x","content":[
        {"type":"image","text":"old","type":"text","text":"new"},{"type":"text","text":"gone","text":0}],"role":"user"}]}"#;
    assert_eq!(text(CHAT, body), turns(&[("user", "new")]));
}

#[test]
fn a4_empty_texts_keep_their_line_breaks() {
    let body = r#"{"model":"m","messages":[{"role":"u","content":[
        {"type":"text","text":""},{"type":"text","text":"x"},{"type":"text","text":""}]}]}"#;
    assert_eq!(text(CHAT, body), turns(&[("u", "\nx\n")]));
}

#[test]
fn a5_instructions_become_a_developer_turn_and_a_string_a_user_turn() {
    let body = r#"{"model":"m","input":"Capital of Peru?","instructions":"One word."}"#;
    assert_eq!(
        text(RESPONSES, body),
        turns(&[("developer", "One word."), ("user", "Capital of Peru?")])
    );
    assert_eq!(
        text(RESPONSES, r#"{"model":"m","instructions":"","input":"x"}"#),
        turns(&[("user", "x")])
    );
    assert_eq!(
        text(
            RESPONSES,
            r#"{"model":"m","instructions":["no"],"input":"x"}"#
        ),
        turns(&[("user", "x")])
    );
}

#[test]
fn a5_only_message_items_of_a_list_are_rendered() {
    let body = r#"{"model":"m","instructions":"Agent.","input":[
        {"type":"message","role":"user","content":[{"type":"input_text","text":"List"}]},
        {"type":"reasoning","summary":[{"type":"summary_text","text":"need ls"}]},
        {"type":"function_call","role":"user","content":"no","name":"ls"},{"type":7,"role":"user","content":"no"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"One"}]},
        {"type":"message","content":"nobody"},{"type":"message","role":"","content":"nobody"},"text",
        {"role":"user","content":[{"type":"input_text","text":"Open"},{"type":"input_image","image_url":"data:,"}]},
        {"type":"","role":"user","content":"a"},{"type":null,"role":"user"}]}"#;
    let want = [
        ("developer", "Agent."),
        ("user", "List"),
        ("assistant", "One"),
        ("user", "Open"),
        ("user", "a"),
        ("user", ""),
    ];
    assert_eq!(text(RESPONSES, body), turns(&want));
}

#[test]
fn a6_a_message_without_text_is_a_turn_with_empty_text() {
    for content in [
        r#""content":null,"#,
        "",
        r#""content":[],"#,
        r#""content":7,"#,
        r#""content":{"text":"no"},"#,
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"assistant",{content}"tool_calls":[{{"x":"y"}}]}}]}}"#
        );
        assert_eq!(text(CHAT, &body), turns(&[("assistant", "")]), "{body}");
    }
}

#[test]
fn a6_shapes_without_text_have_an_empty_prompt() {
    for (path, members) in [
        (CHAT, r#""messages":[]"#),
        (CHAT, r#""messages":null"#),
        (CHAT, r#""messages":"hi""#),
        (CHAT, r#""messages":{"role":"user","content":"hi"}"#),
        (
            CHAT,
            r#""messages":[1,null,"x",[],{},{"content":"no role"},{"role":7,"content":"x"}]"#,
        ),
        (CHAT, r#""x":1"#),
        (COMPLETIONS, r#""prompt":null"#),
        (COMPLETIONS, r#""prompt":[]"#),
        (COMPLETIONS, r#""prompt":[[]]"#),
        (COMPLETIONS, r#""prompt":{"a":1}"#),
        (
            COMPLETIONS,
            r#""messages":[{"role":"user","content":"hi"}]"#,
        ),
        (RESPONSES, r#""input":[]"#),
        (RESPONSES, r#""input":7"#),
        ("/v1/embeddings", r#""input":["a","b"]"#),
        ("/v1/embeddings", r#""input":[1,2]"#),
        ("/v1/rerank", r#""query":"q","documents":["d"]"#),
    ] {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let request = extract(path, None, body.as_bytes()).expect(&body);
        assert!(request.prompt.is_empty(), "{path} {body}");
        assert_eq!(
            (request.prompt.bytes(), request.prompt.characters()),
            (vec![], 0),
            "{path} {body}"
        );
    }
}

#[test]
fn a6_a_list_of_strings_is_its_first_string() {
    assert_eq!(
        text(COMPLETIONS, r#"{"model":"m","prompt":["Once","The"]}"#),
        "Once"
    );
    assert_eq!(text(COMPLETIONS, r#"{"model":"m","prompt":["",7]}"#), "");
}

#[test]
fn a6_token_ids_are_four_bytes_little_endian() {
    let ids = |prompt: &str| {
        bytes(
            COMPLETIONS,
            &format!(r#"{{"model":"m","prompt":{prompt}}}"#),
        )
    };
    assert_eq!(ids("[1,100257]"), [1, 0, 0, 0, 0xa1, 0x87, 1, 0]);
    assert_eq!(ids("[ [1, 2],[3]]"), [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(
        ids("[4294967297,-1]"),
        [1, 0, 0, 0, 255, 255, 255, 255],
        "low 32 bits"
    );
    assert_eq!(
        ids("[340282366920938463463374607431768211457]"),
        [1, 0, 0, 0],
        "2^128 + 1"
    );
    assert_eq!(
        ids("[5,null,1.5,\"x\",1e2,6]"),
        [5, 0, 0, 0, 6, 0, 0, 0],
        "what is no integer is passed over"
    );
}

#[test]
fn a6_other_paths_take_prompt_then_messages_then_input() {
    let all = r#""input":"i","messages":[{"role":"user","content":"m"}],"system":"s""#;
    let path = "/v1/whatever";
    assert_eq!(
        text(path, &format!(r#"{{"model":"m",{all},"prompt":"p"}}"#)),
        "p"
    );
    assert_eq!(
        text(path, &format!(r#"{{"model":"m",{all},"prompt":null}}"#)),
        turns(&[("system", "s"), ("user", "m")])
    );
    assert_eq!(
        text(path, r#"{"model":"m","input":"i","messages":7}"#),
        turns(&[("user", "i")])
    );
}

#[test]
fn a7_escapes_key_order_and_space_do_not_matter() {
    let plain =
        r#"{"model":"m","messages":[{"role":"user","content":"smörgås 😀 北京 / \" \\ é"}]}"#;
    let other = " { \"messages\" : [ { \"content\" : \"sm\\u00f6rg\\u00E5s \\ud83d\\uDE00 \\u5317\\u4eac \\/ \\u0022 \\u005c \\u00e9\"
        ,\"ro\\u006ce\":\"us\\u0065r\" } ] ,\t\"model\":\"m\" } ";
    assert_eq!(bytes(CHAT, plain), bytes(CHAT, other));
    assert_eq!(
        text(CHAT, plain),
        turns(&[("user", "smörgås 😀 北京 / \" \\ é")])
    );
}

#[test]
fn a7_all_escapes_are_decoded() {
    let body = r#"{"model":"m","prompt":"\"\\\/\b\f\n\r\t\u0000\u001F\u20ac\uFFFF\ud800\udc00\udbff\udfff"}"#;
    let want = "\"\\/\u{8}\u{c}\n\r\t\0\u{1f}€\u{ffff}\u{10000}\u{10ffff}";
    assert_eq!(text(COMPLETIONS, body), want);
}

#[test]
fn a7_lone_surrogates_stay_apart() {
    let prompt = |escapes: &str| {
        bytes(
            COMPLETIONS,
            &format!(r#"{{"model":"m","prompt":"{escapes}"}}"#),
        )
    };
    assert_eq!(prompt(r"\ud83d"), [0xed, 0xa0, 0xbd]);
    assert_eq!(prompt(r"\udfff"), [0xed, 0xbf, 0xbf]);
    assert_eq!(prompt(r"\ud83dx"), [0xed, 0xa0, 0xbd, b'x']);
    assert_eq!(
        prompt(r"\ude00\ud83d"),
        [0xed, 0xb8, 0x80, 0xed, 0xa0, 0xbd],
        "the wrong way round"
    );
    assert_eq!(
        prompt(r"\ud83d\ud83d\ude00"),
        [0xed, 0xa0, 0xbd, 0xf0, 0x9f, 0x98, 0x80],
        "a half, then a pair"
    );
    assert_eq!(prompt(r"\ud83d\n"), [0xed, 0xa0, 0xbd, b'\n']);
}

#[test]
fn b2_walk_gives_bytes_and_stops_when_told() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"a\nb"},{"role":"user","content":"c"}]}"#;
    let request = extract(CHAT, None, body.as_bytes()).expect(body);
    let whole = request.prompt.bytes();
    let mut pieces = Vec::new();
    request.prompt.walk(|piece| {
        assert!(!piece.is_empty());
        pieces.push(piece.to_vec());
        ControlFlow::Continue(())
    });
    assert_eq!(pieces.concat(), whole);
    for limit in 1..=pieces.len() {
        let mut seen = 0;
        request.prompt.walk(|_| {
            seen += 1;
            if seen == limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        assert_eq!(seen, limit, "the sink is not called again after it broke");
    }
}

#[test]
fn characters_are_scalar_values_and_ids_count_four() {
    let count = |path, body: &str| {
        extract(path, None, body.as_bytes())
            .expect(body)
            .prompt
            .characters()
    };
    assert_eq!(
        count(
            COMPLETIONS,
            r#"{"model":"m","prompt":"aé\u00e9北😀\ud83d\ude00\n"}"#
        ),
        7
    );
    assert_eq!(count(COMPLETIONS, r#"{"model":"m","prompt":"\ud83d"}"#), 1);
    assert_eq!(
        count(COMPLETIONS, r#"{"model":"m","prompt":[9906,11,1917]}"#),
        12
    );
    assert_eq!(
        count(
            CHAT,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#
        ),
        30
    );
    let long = format!(r#"{{"model":"m","prompt":"{}"}}"#, "x".repeat(1000));
    assert_eq!(count(COMPLETIONS, &long), 1000);
}

#[test]
fn a6_the_last_of_duplicate_members_replaces_the_earlier_one_and_its_count() {
    for (path, members, want) in [
        (
            CHAT,
            r#""messages":[{"role":"a","content":"old"},{"role":"b"}],"messages":[{"role":"user","content":"new"}]"#,
            turns(&[("user", "new")]),
        ),
        (
            CHAT,
            r#""messages":[{"role":"a","content":"old"}],"messages":null"#,
            String::new(),
        ),
        (
            CHAT,
            r#""messages":[{"content":[{"text":"x"},{"text":"y"}],"role":"u","content":"z"},{"role":"u"}]"#,
            turns(&[("u", "z"), ("u", "")]),
        ),
        (
            CHAT,
            r#""messages":[{"content":"x","role":"u","content":7},{"content":"gone","role":"u","role":null}]"#,
            turns(&[("u", "")]),
        ),
        (
            COMPLETIONS,
            r#""prompt":[[1,2]],"prompt":"text""#,
            "text".to_owned(),
        ),
        (
            RESPONSES,
            r#""input":"x","instructions":"y","input":[],"instructions":"""#,
            String::new(),
        ),
    ] {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let prompt = extract(path, None, body.as_bytes()).expect(&body).prompt;
        assert_eq!(prompt.text(), want, "{body}");
        assert_eq!(prompt.characters(), want.chars().count() as u64, "{body}");
    }
}
