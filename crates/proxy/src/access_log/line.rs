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
            OneLine(self.method),
            OneLine(self.path),
            self.protocol,
            self.status_code
        )?;
        if let Some(error) = self.error {
            write!(out, " error={}:{}", error.r#type, OneLine(&error.message))?;
        }
        if !self.model_name.is_empty() {
            write!(out, " model_name={}", Word(self.model_name))?;
        }
        for (key, value) in self.names() {
            write!(out, " {key}={}", Word(value))?;
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
        write!(
            out,
            " timings={}ms({}+{}+{})",
            t.total.as_millis(),
            t.request.as_millis(),
            t.upstream.as_millis(),
            t.response().as_millis()
        )
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

/// Text that cannot break out of its field, either: blanks are escaped, too.
struct Word<'a>(&'a str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_blank = |c: char| c.is_whitespace() && !c.is_control();
        self.0.split_inclusive(is_blank).try_for_each(|part| {
            match part.chars().next_back().filter(|&c| is_blank(c)) {
                None => OneLine(part).fmt(f),
                Some(blank) => {
                    OneLine(part.trim_end_matches(is_blank)).fmt(f)?;
                    write!(f, "{}", blank.escape_unicode())
                }
            }
        })
    }
}

/// Text that cannot break out of its line: control characters are escaped, so that nobody can forge a line.
struct OneLine<'a>(&'a str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(char::is_control) {
            return f.write_str(self.0);
        }
        self.0.chars().try_for_each(|c| {
            if c.is_control() {
                write!(f, "{}", c.escape_default())
            } else {
                f.write_char(c)
            }
        })
    }
}
