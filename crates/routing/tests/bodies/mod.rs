//! Request bodies of every shape, and their spelling as JSON in many ways.
#![allow(dead_code, reason = "not every test needs all of it")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A JSON document with its duplicate keys and its number spelling.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    /// `null`, `true`, `false` or a number, as it is spelled.
    Word(String),
    /// A string, not yet escaped.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object; keys may repeat.
    Object(Vec<(String, Json)>),
}

/// Source of spelling choices (the constants are Knuth's MMIX generator).
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

impl Json {
    /// Spells the document with escapes and white space by choice.
    pub(crate) fn spell(&self, choices: &mut Choices) -> String {
        let mut out = String::new();
        self.write(&mut out, choices);
        out
    }

    fn write(&self, out: &mut String, choices: &mut Choices) {
        space(out, choices);
        match self {
            Self::Word(word) => out.push_str(word),
            Self::Text(text) => string(text, out, choices),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    item.write(out, choices);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (i, (key, value)) in members.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    space(out, choices);
                    string(key, out, choices);
                    space(out, choices);
                    out.push(':');
                    value.write(out, choices);
                }
                space(out, choices);
                out.push('}');
            }
        }
        space(out, choices);
    }

    /// The same document with the members of every object in another order, where no key repeats.
    pub(crate) fn reorder(&mut self, choices: &mut Choices) {
        match self {
            Self::Word(_) | Self::Text(_) => {}
            Self::List(items) => items.iter_mut().for_each(|item| item.reorder(choices)),
            Self::Object(members) => {
                members
                    .iter_mut()
                    .for_each(|(_, value)| value.reorder(choices));
                let mut keys: Vec<_> = members.iter().map(|(key, _)| key.clone()).collect();
                keys.sort();
                keys.dedup();
                if keys.len() == members.len() && !members.is_empty() {
                    let places = members.len();
                    members.rotate_left(choices.below(places as u64) as usize);
                    members.swap(0, choices.below(places as u64) as usize);
                }
            }
        }
    }
}

fn space(out: &mut String, choices: &mut Choices) {
    while choices.below(6) == 0 {
        out.push([' ', '\n', '\r', '\t'][choices.below(4) as usize]);
    }
}

fn string(text: &str, out: &mut String, choices: &mut Choices) {
    out.push('"');
    for c in text.chars() {
        let short = match c {
            '"' | '\\' | '/' => Some(c),
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            _ => None,
        };
        let must = c < ' ' || c == '"' || c == '\\';
        match (choices.below(8), short) {
            (0, _) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let hex = if choices.below(2) == 0 {
                        format!("\\u{unit:04x}")
                    } else {
                        format!("\\u{unit:04X}")
                    };
                    out.push_str(&hex);
                }
            }
            (n, Some(short)) if must || n < 4 => out.extend(['\\', short]),
            _ if must => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Texts: the words that the rules know, and others with everything that needs care in JSON and in UTF-8.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let known = select(vec![
        "",
        "text",
        "input_text",
        "output_text",
        "message",
        "user",
        "assistant",
        "system",
        "image_url",
        "true",
        "include_usage",
        "line one\nline \"two\"\\",
        "<|im_end|>\n",
        "\u{0}\u{1f}\u{7f}\u{80}",
        "smörgås 😀 北京",
        "\u{10000}\u{10ffff}\u{fffd}\u{ffff}",
        "a text that is a good deal longer than one block of the scanner, 64 bytes",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => any::<String>()]
}

fn leaf() -> impl Strategy<Value = Json> {
    let words = select(vec![
        "null",
        "true",
        "false",
        "0",
        "-0",
        "7",
        "-1",
        "4294967297",
        "1.5",
        "1e2",
        "1E+2",
        "0.1e-7",
    ]);
    prop_oneof![1 => words.prop_map(|w| Json::Word(w.to_owned())), 2 => text().prop_map(Json::Text)]
}

/// Any document, with keys that the rules know more often than others.
pub(crate) fn document() -> impl Strategy<Value = Json> {
    leaf().prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![
            9 => select(vec!["role", "content", "type", "text", "include_usage"]).prop_map(str::to_owned),
            1 => text(),
        ];
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::List),
            vec((key, inner), 0..6).prop_map(Json::Object),
        ]
    })
}

fn member(
    key: &'static str,
    value: impl Strategy<Value = Json>,
) -> impl Strategy<Value = (String, Json)> {
    value.prop_map(move |value| (key.to_owned(), value))
}

fn part() -> impl Strategy<Value = Json> {
    let kind = select(vec!["text", "input_text", "output_text", "image_url", ""])
        .prop_map(|s| Json::Text(s.to_owned()));
    let members = prop_oneof![
        3 => member("type", kind),
        3 => member("text", text().prop_map(Json::Text)),
        1 => member("text", document()),
        1 => member("type", document()),
    ];
    vec(members, 0..5).prop_map(Json::Object)
}

fn content() -> impl Strategy<Value = Json> {
    prop_oneof![
        3 => text().prop_map(Json::Text),
        3 => vec(prop_oneof![5 => part().boxed(), 1 => document().boxed()], 0..5).prop_map(Json::List),
        1 => document(),
    ]
}

fn message() -> impl Strategy<Value = Json> {
    let kind = select(vec!["message", "", "reasoning"]).prop_map(|s| Json::Text(s.to_owned()));
    let members = prop_oneof![
        4 => member("role", text().prop_map(Json::Text)),
        4 => member("content", content()),
        1 => member("type", kind),
        1 => member("role", document()),
        1 => member("type", document()),
    ];
    vec(members, 0..6).prop_map(Json::Object)
}

fn messages() -> impl Strategy<Value = Json> {
    vec(
        prop_oneof![6 => message().boxed(), 1 => document().boxed()],
        0..6,
    )
    .prop_map(Json::List)
}

fn prompt() -> impl Strategy<Value = Json> {
    let id = prop_oneof![
        any::<u32>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string())
    ];
    let ids = vec(id.prop_map(Json::Word), 0..9).prop_map(Json::List);
    prop_oneof![
        text().prop_map(Json::Text),
        vec(text().prop_map(Json::Text), 0..3).prop_map(Json::List),
        ids.clone(),
        vec(ids, 0..3).prop_map(Json::List),
        document(),
    ]
}

fn options() -> impl Strategy<Value = Json> {
    let flag = select(vec!["true", "false", "null", "1"]).prop_map(|w| Json::Word(w.to_owned()));
    let members = prop_oneof![
        member("include_usage", flag),
        member("continuous_usage_stats", document())
    ];
    prop_oneof![vec(members, 0..4).prop_map(Json::Object), document()]
}

/// A request with a model `model`, and members in any order, some of them twice.
pub(crate) fn request(model: &'static str) -> impl Strategy<Value = Json> {
    let members = prop_oneof![
        member("messages", messages()).boxed(),
        member("system", content()).boxed(),
        member("prompt", prompt()).boxed(),
        member("input", prop_oneof![messages().boxed(), content().boxed()]).boxed(),
        member("instructions", content()).boxed(),
        member(
            "stream",
            select(vec!["true", "false"]).prop_map(|w| Json::Word(w.to_owned()))
        )
        .boxed(),
        member("stream_options", options()).boxed(),
        member("model", text().prop_map(Json::Text)).boxed(),
        (text(), document()).boxed(),
    ];
    (vec(members.clone(), 0..8), vec(members, 0..4)).prop_map(move |(mut before, after)| {
        before.push(("model".to_owned(), Json::Text(model.to_owned())));
        before.extend(after.into_iter().filter(|(key, _)| key != "model"));
        Json::Object(before)
    })
}

/// The paths that have rules of their own, and one that has none.
pub(crate) fn path() -> impl Strategy<Value = &'static str> {
    select(vec![
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/embeddings",
    ])
}
