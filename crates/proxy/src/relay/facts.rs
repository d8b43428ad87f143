//! What the router wants to know of a response: its token counts, and whether the engine gave up.
//!
//! The bytes are searched, not parsed: inside a JSON string a quote is always written `\"`, so the byte sequence
//! `"usage"` can only be a key (or a whole string value, which the colon after it rules out).

use super::events::Block;
use memchr::memmem::Finder;
use serde_json::value::RawValue;
use std::sync::LazyLock;

/// Token counts as the engine reports them; 0 where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `prompt_tokens` or `input_tokens`.
    pub prompt: u64,
    /// `completion_tokens` or `output_tokens`.
    pub completion: u64,
    /// `total_tokens`.
    pub total: u64,
    /// Prompt tokens that the engine found in its cache: `cached_tokens` of `prompt_tokens_details` or
    /// `input_tokens_details`, or `cache_read_input_tokens`; `None` where it says nothing.
    pub cached: Option<u64>,
    /// Prompt tokens in all: `prompt`, and in the Messages API those of the cache, which it counts apart.
    pub whole_prompt: u64,
}

/// What is known of a response so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The latest usage report.
    pub usage: Option<Usage>,
    /// The engine ended the answer in good order but says that it failed: an error event inside a stream, or
    /// `finish_reason: "abort"`.
    pub gave_up: bool,
    /// The event that ends a stream in good order was seen: `[DONE]`, `response.completed`, `response.incomplete` or
    /// `message_stop`. Clients may leave then. Of a JSON document: it is whole, if that was asked for.
    pub complete: bool,
}

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"usage\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static RESPONSE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"response."));
const ABORT: &[u8] = b"\"abort\"";
static STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message_stop\""));

/// Longest event that may be a `message_stop`, in bytes: it holds its type and nothing else.
const MAX_STOP: usize = 256;

impl Facts {
    /// Looks at JSON, or a part of it. Returns from where on a match may go on behind the end of `text`.
    pub(super) fn read_json(&mut self, text: &[u8]) -> usize {
        let open = self.read_usage(text).min(self.read_abort(text));
        // The last bytes may be the start of a key.
        let longest_key = USAGE.needle().len().max(FINISH.needle().len());
        open.min((text.len() + 1).saturating_sub(longest_key))
    }

    /// Looks at one event of a stream.
    pub fn read_event(&mut self, event: Block<'_>) {
        let data = event.data;
        if data == b"[DONE]" {
            self.complete = true;
            return;
        }
        self.read_usage(data);
        self.read_abort(data);
        self.gave_up |= event.is_error || is_error_event(data);
        match response_event(data) {
            Some(kind) if kind.starts_with(b"failed\"") => self.gave_up = true,
            Some(_) => self.complete = true,
            None => {}
        }
        let stop = || STOP.find(data).is_some_and(|at| is_type_value(data, at));
        self.complete |= data.len() <= MAX_STOP && stop();
    }

    /// Returns where the first match begins whose value is not complete, or the length of `text`.
    fn read_usage(&mut self, text: &[u8]) -> usize {
        let mut open = text.len();
        for at in USAGE.find_iter(text) {
            match value_after_key(text, at + USAGE.needle().len()).map(parse_usage) {
                Some(Parsed::Usage(mut usage)) => {
                    // A stream may report more than once, not everything each time.
                    usage.cached = usage.cached.or(self.usage.and_then(|before| before.cached));
                    self.usage = Some(usage);
                }
                Some(Parsed::Cut) => open = open.min(at),
                Some(Parsed::Other) | None => {}
            }
        }
        open
    }

    /// Returns the same.
    fn read_abort(&mut self, text: &[u8]) -> usize {
        let mut open = text.len();
        for at in FINISH.find_iter(text) {
            match value_after_key(text, at + FINISH.needle().len()) {
                Some(value) if value.starts_with(ABORT) => self.gave_up = true,
                Some(value) if ABORT.starts_with(value) => open = open.min(at),
                _ => {}
            }
        }
        open
    }
}

/// An event that brings usage and nothing else, as an engine sends it last when it was asked to.
pub(super) fn is_usage_only(data: &[u8]) -> bool {
    if USAGE.find(data).is_none() {
        return false;
    }
    let mut facts = Facts::default();
    facts.read_usage(data);
    let Some(usage) = facts.usage else {
        return false;
    };
    let Ok(serde_json::Value::Object(event)) = serde_json::from_slice(data) else {
        return false;
    };
    let no_choices = match event.get("choices") {
        None | Some(serde_json::Value::Null) => true,
        Some(serde_json::Value::Array(choices)) => choices.is_empty(),
        Some(_) => false,
    };
    no_choices && usage.total > 0 && event.get("usage").is_some_and(serde_json::Value::is_object)
}

/// Whether the event's top-level object has an `error` that is not null, or says that it is one. Only an event that holds
/// the word as a key or a value at all is parsed; a nested `"error": null` is part of every event of the Responses API.
fn is_error_event(data: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Event<'a> {
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
        #[serde(borrow, default)]
        r#type: Option<&'a RawValue>,
        #[serde(borrow, default)]
        object: Option<&'a RawValue>,
    }
    let says = |value: Option<&RawValue>| value.is_some_and(|v| v.get() == "\"error\"");
    ERROR.find(data).is_some()
        && serde_json::from_slice::<Event<'_>>(data)
            .is_ok_and(|e| e.error.is_some() || says(e.r#type) || says(e.object))
}

/// What follows `response.` in the type of an event that ends a response.
fn response_event(data: &[u8]) -> Option<&[u8]> {
    let mut from = 0;
    while let Some(at) = RESPONSE.find(&data[from..]) {
        let quote = from + at;
        from = quote + RESPONSE.needle().len();
        let rest = &data[from..];
        let ends = [&b"failed\""[..], b"completed\"", b"incomplete\""];
        if ends.iter().any(|end| rest.starts_with(end)) && is_type_value(data, quote) {
            return Some(rest);
        }
    }
    None
}

fn is_type_value(data: &[u8], at: usize) -> bool {
    data[..at]
        .trim_ascii_end()
        .strip_suffix(b":")
        .is_some_and(|d| d.trim_ascii_end().ends_with(b"\"type\""))
}

/// The text from the value on, if a colon follows the key. Empty where the text ends before the value.
fn value_after_key(text: &[u8], after_key: usize) -> Option<&[u8]> {
    match text[after_key..].trim_ascii_start() {
        [] => Some(&[]),
        rest => rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start),
    }
}

enum Parsed {
    Usage(Usage),
    /// The text ends inside the value.
    Cut,
    Other,
}

/// The object at the start of the text as token counts. Both families of names are known: chat and completions say
/// `prompt_tokens` / `completion_tokens`, Responses and Messages `input_tokens` / `output_tokens`.
fn parse_usage(text: &[u8]) -> Parsed {
    #[derive(serde::Deserialize)]
    struct Wire {
        #[serde(alias = "input_tokens", default)]
        prompt_tokens: Option<u64>,
        #[serde(alias = "output_tokens", default)]
        completion_tokens: Option<u64>,
        #[serde(default)]
        total_tokens: Option<u64>,
        #[serde(alias = "input_tokens_details", default)]
        prompt_tokens_details: Option<Details>,
        #[serde(default)]
        cache_read_input_tokens: Option<u64>,
        #[serde(default)]
        cache_creation_input_tokens: Option<u64>,
    }
    #[derive(serde::Deserialize)]
    struct Details {
        #[serde(default)]
        cached_tokens: Option<u64>,
    }
    match text.first() {
        None => return Parsed::Cut,
        Some(b'{') => {}
        Some(_) => return Parsed::Other,
    }
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Wire>();
    let wire = match values.next() {
        Some(Ok(wire)) => wire,
        Some(Err(error)) if error.is_eof() => return Parsed::Cut,
        _ => return Parsed::Other,
    };
    let counts = [
        wire.prompt_tokens,
        wire.completion_tokens,
        wire.total_tokens,
    ];
    if counts.iter().all(Option::is_none) {
        // The schema of a tool may have a property of this name.
        return Parsed::Other;
    }
    let [prompt, completion, total] = counts;
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let read = wire.cache_read_input_tokens;
    let apart = read
        .unwrap_or(0)
        .saturating_add(wire.cache_creation_input_tokens.unwrap_or(0));
    Parsed::Usage(Usage {
        prompt,
        completion,
        total: total.unwrap_or(prompt.saturating_add(completion)),
        cached: wire
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens)
            .or(read),
        whole_prompt: prompt.saturating_add(apart),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Facts {
        named(text, false)
    }

    fn named(text: &str, is_error: bool) -> Facts {
        let mut facts = Facts::default();
        let data = text.as_bytes();
        facts.read_event(Block { data, is_error });
        facts
    }

    #[test]
    fn the_event_that_ends_a_stream_is_known() {
        for text in [
            "[DONE]",
            r#"{"type":"response.completed","response":{}}"#,
            r#"{"response":{"x":"response.created"}, "type" : "response.incomplete"}"#,
            r#"{"type": "message_stop"}"#,
        ] {
            assert!(event(text).complete, "{text}");
        }
        for text in [
            r#"{"type":"response.failed","response":{}}"#,
            r#"{"type":"response.output_text.delta","delta":"response.completed"}"#,
            r#"{"choices":[{"delta":{"content":"[DONE]"}}]}"#,
            r#"{"choices":[{"delta":{"content":"\"type\": \"message_stop\""}}]}"#,
        ] {
            assert!(!event(text).complete, "{text}");
        }
    }

    #[test]
    fn usage_of_every_api() {
        let chat = event(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":12,"completion_tokens":3,"x":{}}}"#,
        );
        assert_eq!(
            chat.usage,
            Some(Usage {
                prompt: 9,
                completion: 3,
                total: 12,
                cached: None,
                whole_prompt: 9
            })
        );
        let responses = event(
            r#"{"type":"response.completed","response":{"error":null,"usage":{"input_tokens":4,"output_tokens":5}}}"#,
        );
        assert_eq!(
            (responses.usage, responses.gave_up),
            (
                Some(Usage {
                    prompt: 4,
                    completion: 5,
                    total: 9,
                    cached: None,
                    whole_prompt: 4
                }),
                false
            )
        );
        assert_eq!(
            event(r#"{"choices":[{"delta":{"content":"\"usage\":{\"completion_tokens\":7}"}}]}"#)
                .usage,
            None
        );
        assert_eq!(event(r#"{"choices":[],"usage":null}"#).usage, None);
    }

    #[test]
    fn what_was_cached_is_kept_when_a_later_report_says_nothing_of_it() {
        let mut facts = Facts::default();
        for text in [
            r#"{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":8}}}"#,
            r#"{"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
        ] {
            let data = text.as_bytes();
            let is_error = false;
            facts.read_event(Block { data, is_error });
        }
        let usage = facts.usage.unwrap();
        assert_eq!((usage.cached, usage.completion), (Some(8), 3));
    }

    #[test]
    fn d5_an_error_event_or_an_abort_is_a_failure() {
        for text in [
            r#"{"error": {"message":"x","code":500}}"#,
            r#"{"type":"error","error":{"message":"x"}}"#,
            r#"{"choices":[{"index":0,"finish_reason": "abort"}]}"#,
            r#"{"type":"response.failed","response":{}}"#,
            r#"{"type":"error","code":"server_error","message":"x","param":null}"#,
            r#"{"object" : "error","message":"x","code":500}"#,
        ] {
            assert!(event(text).gave_up, "{text}");
        }
        assert!(named("overloaded", true).gave_up, "an event called error");
        for text in [
            r#"{"choices":[{"delta":{"content":"error","type":"error"}}]}"#,
            r#"{"choices":[{"finish_reason":"stop","delta":{"content":"\"error\":1 abort"}}]}"#,
            r#"{"error":null,"choices":[]}"#,
            r#"{"choices":[{"delta":{"content":"abort"},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"response.failed"}}]}"#,
        ] {
            assert!(!event(text).gave_up, "{text}");
        }
    }

    #[test]
    fn a_property_called_usage_in_the_schema_of_a_tool_is_no_report() {
        let text = r#"{"usage":{"input_tokens":4,"output_tokens":5},"tools":[{"usage":{"type":"string"}}]}"#;
        let mut facts = Facts::default();
        facts.read_json(text.as_bytes());
        assert_eq!(facts.usage.map(|u| u.total), Some(9));
    }

    #[test]
    fn only_usage_without_choices_is_usage_only() {
        assert!(is_usage_only(br#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#));
        assert!(is_usage_only(
            br#"{"choices":null,"usage":{"total_tokens":1}}"#
        ));
        assert!(is_usage_only(
            br#"{"id":"1", "usage" : {"total_tokens":1}}"#
        ));
        assert!(!is_usage_only(
            br#"{"choices":[{}],"usage":{"total_tokens":12}}"#
        ));
        assert!(!is_usage_only(br#"{"choices":[],"usage":null}"#));
        assert!(!is_usage_only(b"[DONE]"));
    }
}
