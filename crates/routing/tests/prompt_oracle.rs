//! The walk over raw bytes against a plain rendering of a parsed tree.

mod bodies;

use bodies::{Choices, path, request};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use routing::request::extract;
use serde_json::Value;
use std::char::DecodeUtf16Error;

enum Rendered {
    Text(String),
    Ids(Vec<u32>),
}

fn oracle(path: &str, body: &Value) -> Rendered {
    let turns = match path {
        "/v1/completions" => return completion(&body["prompt"]),
        "/v1/responses" => responses(body),
        "/v1/chat/completions" | "/v1/messages" => chat(body),
        _ => match completion(&body["prompt"]) {
            Rendered::Text(text) if !has_prompt(&body["prompt"]) => {
                assert_eq!(text, "");
                if body["messages"].is_array() {
                    chat(body)
                } else {
                    responses(body)
                }
            }
            rendered => return rendered,
        },
    };
    Rendered::Text(
        turns
            .iter()
            .map(|(role, text)| format!("<|im_start|>{role}\n{text}<|im_end|>\n"))
            .collect(),
    )
}

/// Whether the value holds a string or a list that begins with a string or a number, however deep.
fn has_prompt(value: &Value) -> bool {
    match value {
        Value::Array(list) => list
            .first()
            .is_some_and(|first| first.is_number() || has_prompt(first)),
        other => other.is_string(),
    }
}

fn completion(value: &Value) -> Rendered {
    match value {
        Value::String(text) => Rendered::Text(text.clone()),
        Value::Array(list) => match list.first() {
            Some(Value::Number(_)) => Rendered::Ids(list.iter().filter_map(id).collect()),
            Some(first) if !first.is_object() => completion(first),
            _ => Rendered::Text(String::new()),
        },
        _ => Rendered::Text(String::new()),
    }
}

fn id(value: &Value) -> Option<u32> {
    let spelled = value.to_string();
    // serde_json reads the integer -0 as a float.
    if spelled == "-0.0" {
        Some(0)
    } else {
        spelled.parse::<i128>().ok().map(|n| n as u32)
    }
}

fn chat(body: &Value) -> Vec<(String, String)> {
    let mut turns = Vec::new();
    if body["system"].is_string() || body["system"].is_array() {
        turns.push(("system".to_owned(), content(&body["system"])));
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        if let Some(role) = message["role"].as_str() {
            turns.push((role.to_owned(), content(&message["content"])));
        }
    }
    turns
}

fn responses(body: &Value) -> Vec<(String, String)> {
    let mut turns = Vec::new();
    if let Some(text) = body["instructions"]
        .as_str()
        .filter(|text| !text.is_empty())
    {
        turns.push(("developer".to_owned(), text.to_owned()));
    }
    match &body["input"] {
        Value::String(text) => turns.push(("user".to_owned(), text.clone())),
        Value::Array(items) => {
            for item in items {
                let message = matches!(&item["type"], Value::Null)
                    || item["type"] == ""
                    || item["type"] == "message";
                if let (true, Some(role)) = (
                    message,
                    item["role"].as_str().filter(|role| !role.is_empty()),
                ) {
                    turns.push((role.to_owned(), content(&item["content"])));
                }
            }
        }
        _ => {}
    }
    turns
}

fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(part).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn part(part: &Value) -> Option<&str> {
    let kind = &part["type"];
    let known = kind.is_null()
        || ["text", "input_text", "output_text"]
            .iter()
            .any(|known| kind == known);
    if known { part["text"].as_str() } else { None }
}

/// A stretch of a string as it is spelled, and its UTF-16 code units.
fn stretch() -> impl Strategy<Value = (String, Vec<u16>)> {
    let literal = |text: String| {
        let units = text.encode_utf16().collect();
        (text, units)
    };
    prop_oneof![
        4 => "[a-zA-Z /é北😀]{0,80}".prop_map(literal),
        1 => "[a-z]{200,600}".prop_map(literal),
        4 => select(vec![
            ("\\n", '\n'), ("\\t", '\t'), ("\\r", '\r'), ("\\b", '\u{8}'), ("\\f", '\u{c}'), ("\\/", '/'),
            ("\\\"", '"'), ("\\\\", '\\'),
        ]).prop_map(|(spelled, c)| (spelled.to_owned(), vec![c as u16])),
        6 => prop_oneof![any::<u16>(), 0xd800..0xd804u16, 0xdc00..0xdc04u16, Just(0x5c), Just(0x22)]
            .prop_map(|unit| (format!("\\u{unit:04x}"), vec![unit])),
    ]
}

/// A surrogate without a partner is three bytes, like any other code point of its size (WTF-8).
fn generalised_utf8(characters: &[Result<char, DecodeUtf16Error>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for character in characters {
        match character {
            Ok(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let [high, low] = lone.unpaired_surrogate().to_be_bytes();
                bytes.push(0xe0 | high >> 4);
                bytes.push(0x80 | (high & 0x0f) << 2 | low >> 6);
                bytes.push(0x80 | low & 0x3f);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a7_the_walk_renders_what_a_parsed_tree_renders(body in request("m"), path in path(), seed: u64) {
        let spelled = body.spell(&mut Choices(seed));
        let tree: Value = serde_json::from_str(&spelled).expect("the generator writes JSON");
        let prompt = extract(path, None, spelled.as_bytes()).expect(&spelled).prompt;
        match oracle(path, &tree) {
            Rendered::Text(text) => {
                prop_assert_eq!(String::from_utf8(prompt.bytes()).expect("UTF-8"), &*text, "{} {}", path, spelled);
                prop_assert_eq!(prompt.characters(), text.chars().count() as u64, "{}", spelled);
                prop_assert_eq!(prompt.is_empty(), text.is_empty());
            }
            Rendered::Ids(ids) => {
                let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                prop_assert_eq!(prompt.bytes(), bytes, "{} {}", path, spelled);
                prop_assert_eq!(prompt.characters(), 4 * ids.len() as u64);
                prop_assert_eq!(prompt.spelled_bytes(), 4 * ids.len());
            }
        }
    }

    #[test]
    fn a7_texts_of_any_length_keep_every_byte_and_character(text in vec(stretch(), 0..40)) {
        let (spelled, units): (Vec<_>, Vec<_>) = text.into_iter().unzip();
        let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, spelled.concat());
        let prompt = extract("/v1/completions", None, body.as_bytes()).expect(&body).prompt;
        let characters: Vec<_> = char::decode_utf16(units.concat()).collect();
        prop_assert_eq!(prompt.characters(), characters.len() as u64, "{}", body);
        prop_assert!(prompt.spelled_bytes() >= prompt.bytes().len(), "{}", body);
        if !body.contains('\\') {
            prop_assert_eq!(prompt.spelled_bytes(), prompt.bytes().len(), "{}", body);
        }
        prop_assert_eq!(prompt.bytes(), generalised_utf8(&characters), "{}", body);
    }

    #[test]
    fn a7_spelling_and_order_do_not_change_a_byte(mut body in request("m"), path in path(), seeds: [u64; 3]) {
        let one = body.spell(&mut Choices(seeds[0]));
        body.reorder(&mut Choices(seeds[1]));
        let two = body.spell(&mut Choices(seeds[2]));
        let render = |body: &str| extract(path, None, body.as_bytes()).map(|r| r.prompt.bytes());
        prop_assert_eq!(render(&one), render(&two), "{}\n{}", one, two);
    }
}
