//! Reading typed values out of a [`Node`], reporting everything that is wrong instead of stopping at the first.
//!
//! The texts follow those of the Kubernetes API server, so that a manifest fails here in the words that it would fail
//! in there. An absent field and a null are the same, as they are there.

use crate::go_duration;
use crate::node::{Node, Value};
use crate::problem::{Severity, Sink};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

/// One value, with its place.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    node: &'a Node,
    path: String,
    sink: &'a Sink,
}

impl<'a> Reader<'a> {
    /// The root of a document.
    pub(crate) fn root(node: &'a Node, sink: &'a Sink) -> Self {
        Self {
            node,
            path: String::new(),
            sink,
        }
    }

    pub(crate) fn line(&self) -> u32 {
        self.node.line
    }

    pub(crate) fn sink(&self) -> &'a Sink {
        self.sink
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn is_null(&self) -> bool {
        self.node.value == Value::Null
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        self.node.to_json()
    }

    /// The value is not allowed, which `detail` explains. `value` is shown: it must not be a secret.
    pub(crate) fn invalid(&self, value: impl fmt::Display, detail: &str) {
        self.error(format!("Invalid value: {value}: {detail}"));
    }

    /// The value must not be empty.
    pub(crate) fn missing(&self, detail: &str) {
        self.error(format!("Required value: {detail}"));
    }

    pub(crate) fn error(&self, message: impl Into<String>) {
        self.sink
            .add(Severity::Error, self.node.line, &self.path, message);
    }

    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.sink
            .add(Severity::Warning, self.node.line, &self.path, message);
    }

    pub(crate) fn note(&self, message: impl Into<String>) {
        self.sink
            .add(Severity::Note, self.node.line, &self.path, message);
    }

    /// Says that a valid field does nothing yet.
    pub(crate) fn without_effect(&self) {
        self.note("accepted, but without an effect in this version");
    }

    fn mistyped<T>(&self, wanted: &str) -> Option<T> {
        let found = &self.node.value;
        // The value itself stays out of the message: it may come from a Secret.
        let hint = match found {
            Value::Number(_) | Value::Bool(_) if wanted == "a string" => "; put it in quotes",
            _ => "",
        };
        self.error(format!("must be {wanted}, not {}{hint}", found.type_name()));
        None
    }

    /// The fields of an object.
    pub(crate) fn object(&self) -> Option<Fields<'a>> {
        match &self.node.value {
            Value::Map(entries) => Some(Fields {
                entries,
                line: self.node.line,
                path: self.path.clone(),
                sink: self.sink,
                asked: Vec::new(),
            }),
            _ => self.mistyped("an object"),
        }
    }

    /// The items of a list, at most `max` of them.
    pub(crate) fn list(&self, max: usize) -> Option<Vec<Reader<'a>>> {
        let Value::List(items) = &self.node.value else {
            return self.mistyped("a list");
        };
        if items.len() > max {
            self.error(format!(
                "Too many: {}: must have at most {max} items",
                items.len()
            ));
        }
        let item = |(i, node)| Reader {
            node,
            path: format!("{}[{i}]", self.path),
            sink: self.sink,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// The values of an object whose keys are data.
    pub(crate) fn entries(&self) -> Option<Vec<(&'a str, Reader<'a>)>> {
        let Value::Map(entries) = &self.node.value else {
            return self.mistyped("an object");
        };
        let entry = |(key, node): &'a (String, Node)| {
            (
                key.as_str(),
                Reader {
                    node,
                    path: format!("{}[{key}]", self.path),
                    sink: self.sink,
                },
            )
        };
        Some(entries.iter().map(entry).collect())
    }

    pub(crate) fn string(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::String(s) => Some(s),
            _ => self.mistyped("a string"),
        }
    }

    /// A string of at most `max` characters.
    pub(crate) fn string_up_to(&self, max: usize) -> Option<&'a str> {
        let text = self.string()?;
        if text.chars().count() > max {
            self.error(format!("Too long: may not be more than {max} characters"));
        }
        Some(text)
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.node.value {
            Value::Bool(b) => Some(b),
            _ => self.mistyped("a boolean"),
        }
    }

    /// A whole number in the range.
    pub(crate) fn integer<T: TryFrom<i64>>(&self, range: RangeInclusive<i64>) -> Option<T> {
        let Value::Number(number) = &self.node.value else {
            return self.mistyped("an integer");
        };
        if number.is_f64() {
            self.error("must be an integer, not a number with a fraction");
            return None;
        }
        let value = number
            .as_i64()
            .filter(|v| range.contains(v))
            .and_then(|v| T::try_from(v).ok());
        if value.is_none() {
            self.error(format!(
                "Invalid value: {number}: must be in the range {}..{}",
                range.start(),
                range.end()
            ));
        }
        value
    }

    /// One of the named values.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.string()?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<_> = choices
                .iter()
                .map(|(name, _)| format!("{name:?}"))
                .collect();
            self.error(format!(
                "Unsupported value: {text:?}: supported values: {}",
                names.join(", ")
            ));
        }
        found.map(|&(_, value)| value)
    }

    /// A Go duration such as `1m30s`.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let problem = |e: go_duration::DurationError| self.error(e.to_string());
        go_duration::parse(self.string()?).map_err(problem).ok()
    }
}

/// The fields of one object. Each is asked for by name; what nobody asked for is unknown.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    entries: &'a [(String, Node)],
    line: u32,
    path: String,
    sink: &'a Sink,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The field, if it is set.
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Reader<'a>> {
        self.asked.push(name);
        #[cfg(test)]
        self.sink.note_asked(&self.path_of(name));
        let (_, node) = self.entries.iter().find(|(key, _)| key == name)?;
        (node.value != Value::Null).then(|| Reader {
            node,
            path: self.path_of(name),
            sink: self.sink,
        })
    }

    /// The field, or an error that ends with this text if it is not set.
    pub(crate) fn required_or(&mut self, name: &'static str, detail: &str) -> Option<Reader<'a>> {
        self.required_with(name, &format!("Required value: {detail}"))
    }

    fn required_with(&mut self, name: &'static str, message: &str) -> Option<Reader<'a>> {
        let field = self.optional(name);
        if field.is_none() {
            let line = self
                .entries
                .iter()
                .find(|(key, _)| key == name)
                .map_or(self.line, |(_, node)| node.line);
            self.sink
                .add(Severity::Error, line, &self.path_of(name), message);
        }
        field
    }

    /// The field, or an error if it is not set.
    pub(crate) fn required(&mut self, name: &'static str) -> Option<Reader<'a>> {
        self.required_with(name, "Required value")
    }

    /// Knows the fields without reading them.
    pub(crate) fn skip(&mut self, names: &[&'static str]) {
        self.asked.extend_from_slice(names);
    }

    /// Warns about each field that nobody asked for.
    pub(crate) fn finish(self) {
        for (key, node) in self.entries {
            if !self.asked.contains(&key.as_str()) {
                self.sink.add(
                    Severity::Warning,
                    node.line,
                    &self.path_of(key),
                    "unknown field",
                );
            }
        }
    }
}
