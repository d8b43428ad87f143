//! One line of the access log. Names, order and shapes are those that existing log parsers rely on.

use super::Format;
use serde::Serialize;
use std::fmt::{self, Display, Write};
use std::time::Duration;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Class of the failure, one of a fixed list.
    pub r#type: &'static str,
    /// What happened.
    pub message: String,
}

/// Where a request's time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// From receipt to the last byte.
    pub total: Duration,
    /// From receipt to the end of parsing and token estimation.
    pub request: Duration,
    /// From the first attempt to the end of the upstream response.
    pub upstream: Duration,
}

impl Timings {
    /// The rest: scheduling, and what followed the upstream response.
    #[must_use]
    pub fn response(&self) -> Duration {
        self.total
            .saturating_sub(self.request)
            .saturating_sub(self.upstream)
    }
}

/// What one line says. `None`, empty and zero fields are left out, but for those that parsers expect always.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are the keys of the line")]
pub struct Entry<'a> {
    pub timestamp: jiff::Timestamp,
    pub method: &'a str,
    pub path: &'a str,
    pub protocol: &'a str,
    pub status_code: u16,
    pub error: Option<&'a Failure>,
    pub model_name: &'a str,
    pub model_route: &'a str,
    pub model_server: &'a str,
    pub selected_pod: &'a str,
    pub prefill_pod: &'a str,
    pub request_id: &'a str,
    pub backend_type: &'a str,
    pub backend_name: &'a str,
    pub upstream_model: &'a str,
    pub upstream_status_code: u16,
    pub upstream_attempts: u32,
    pub error_origin: &'a str,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub timings: Timings,
}

impl Entry<'_> {
    /// Appends the line with its line end.
    pub fn write(&self, format: Format, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match format {
            Format::Text => self.write_text(out),
            Format::Json => self.write_json(out),
        };
        out.push('\n');
    }

    /// The names that are known, in the order of the line.
    fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("model_route", self.model_route),
            ("model_server", self.model_server),
            ("selected_pod", self.selected_pod),
            ("prefill_pod", self.prefill_pod),
            ("request_id", self.request_id),
            ("backend_type", self.backend_type),
            ("backend_name", self.backend_name),
            ("upstream_model", self.upstream_model),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        write!(
            out,
            "[{}] \"{} {} {}\" {}",
            self.timestamp,
            Plain(self.method),
            Plain(self.path),
            self.protocol,
            self.status_code
        )?;
        if let Some(error) = self.error {
            write!(out, " error={}:{}", error.r#type, Sentence(&error.message))?;
        }
        if !self.model_name.is_empty() {
            field(out, "model_name", self.model_name)?;
        }
        for (key, value) in self.names() {
            field(out, key, value)?;
        }
        if self.upstream_status_code != 0 {
            write!(out, " upstream_status_code={}", self.upstream_status_code)?;
        }
        if self.upstream_attempts != 0 {
            write!(out, " upstream_attempts={}", self.upstream_attempts)?;
        }
        if !self.error_origin.is_empty() {
            write!(out, " error_origin={}", self.error_origin)?;
        }
        if self.input_tokens != 0 || self.output_tokens != 0 {
            write!(out, " tokens={}/{}", self.input_tokens, self.output_tokens)?;
        }
        let t = &self.timings;
        let [total, request, upstream, response] =
            [t.total, t.request, t.upstream, t.response()].map(millis);
        write!(out, " timings={total}ms({request}+{upstream}+{response})")
    }

    fn write_json(&self, out: &mut String) -> fmt::Result {
        out.push('{');
        let mut json = Object { out, first: true };
        json.text("timestamp", &self.timestamp.to_string())?;
        json.text("method", self.method)?;
        json.text("path", self.path)?;
        json.text("protocol", self.protocol)?;
        json.number("status_code", u64::from(self.status_code))?;
        if let Some(error) = self.error {
            json.value("error", error)?;
        }
        json.text("model_name", self.model_name)?;
        for (key, value) in self.names() {
            json.text(key, value)?;
        }
        for (key, value) in [
            ("upstream_status_code", u64::from(self.upstream_status_code)),
            ("upstream_attempts", u64::from(self.upstream_attempts)),
        ] {
            if value != 0 {
                json.number(key, value)?;
            }
        }
        if !self.error_origin.is_empty() {
            json.text("error_origin", self.error_origin)?;
        }
        for (key, value) in [
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
        ] {
            if value != 0 {
                json.number(key, value)?;
            }
        }
        let t = &self.timings;
        for (key, value) in [
            ("duration_total", t.total),
            ("duration_request_processing", t.request),
            ("duration_upstream_processing", t.upstream),
            ("duration_response_processing", t.response()),
        ] {
            json.number(key, value.as_millis())?;
        }
        out.push('}');
        Ok(())
    }
}

/// Appends a field of the text format, without the formatting machinery where nothing is to be escaped.
fn field(out: &mut String, key: &str, value: &str) -> fmt::Result {
    out.push(' ');
    out.push_str(key);
    out.push('=');
    if is_plain(value) {
        out.push_str(value);
        return Ok(());
    }
    write!(out, "{}", Plain(value))
}

/// Whole milliseconds in a word, which is written faster than two.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A JSON object written member by member.
struct Object<'a> {
    out: &'a mut String,
    first: bool,
}

impl Object<'_> {
    fn key(&mut self, key: &str) -> fmt::Result {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}\"{key}\":")
    }

    fn number(&mut self, key: &str, value: impl Display) -> fmt::Result {
        self.key(key)?;
        write!(self.out, "{value}")
    }

    fn text(&mut self, key: &str, value: &str) -> fmt::Result {
        self.value(key, &value)
    }

    fn value(&mut self, key: &str, value: &impl Serialize) -> fmt::Result {
        self.key(key)?;
        self.out
            .push_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?);
        Ok(())
    }
}

/// A value that cannot break out of its field: control characters, blanks, quotes and `=` are escaped as in Rust, so that
/// nobody can forge a line, or a field for a parser that looks for `key=value`.
struct Plain<'a>(&'a str);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, f, |c| {
            c.is_control() || c.is_whitespace() || matches!(c, '=' | '"')
        })
    }
}

/// The same for a message, which is made of words. It may quote what a client sent.
struct Sentence<'a>(&'a str);

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.0, f, |c| {
            c.is_control() || (c.is_whitespace() && c != ' ') || c == '='
        })
    }
}

/// Whether a text is what nearly all are: bytes that need no escape anywhere. Decided without a call for each character.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_graphic() && b != b'=' && b != b'"')
}

fn escaped(text: &str, f: &mut fmt::Formatter<'_>, is_unsafe: fn(char) -> bool) -> fmt::Result {
    if is_plain(text) || !text.contains(is_unsafe) {
        return f.write_str(text);
    }
    text.chars().try_for_each(|c| match c {
        '\n' | '\r' | '\t' => write!(f, "{}", c.escape_default()),
        _ if is_unsafe(c) => write!(f, "{}", c.escape_unicode()),
        _ => f.write_char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_chooses_cannot_forge_a_field_or_a_line() {
        let evil = "m selected_pod=evil\n\u{2028}\"x\u{a0}";
        let error = Failure {
            r#type: "request_parsing",
            message: format!("coding {evil:?} request_id=evil\n"),
        };
        let entry = Entry {
            method: evil,
            path: evil,
            protocol: "HTTP/1.1",
            status_code: 200,
            error: Some(&error),
            model_name: evil,
            selected_pod: "p0",
            request_id: "r",
            ..Entry::default()
        };
        let mut line = String::new();
        entry.write(Format::Text, &mut line);
        assert_eq!(line.matches("selected_pod=").count(), 1, "{line}");
        assert_eq!(line.matches("request_id=").count(), 1, "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(!line.contains('\u{2028}'), "{line}");
        // In quotes: method, path and protocol, which blanks part.
        let quoted = line.split('"').nth(1).unwrap();
        assert_eq!(quoted.split_whitespace().count(), 3, "{line}");
    }

    #[test]
    fn ordinary_values_are_written_as_they_are() {
        for value in [
            "Qwen/Qwen2.5-7B-Instruct",
            "/v1/models/a%20b",
            "modèle",
            "a\\b:c",
        ] {
            assert_eq!(Plain(value).to_string(), value);
        }
        let message = "request processing failed: default/m:p0: cannot connect: Connection refused (os error 111)";
        assert_eq!(Sentence(message).to_string(), message);
    }
}
