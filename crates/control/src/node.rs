//! A YAML or JSON document as a tree whose every node knows its line.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::Spanned;
use std::fmt;

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Line, from 1, of the key that holds the value, or of the value itself in a list; 0 when unknown.
    pub(crate) line: u32,
    pub(crate) value: Value,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Always finite: `.nan` and `.inf` become the strings `NaN`, `+Inf` and `-Inf`, as JSON has no such numbers.
    Number(Number),
    String(String),
    List(Vec<Node>),
    /// In the order of the file; a key appears once.
    Map(Vec<(String, Node)>),
}

impl Value {
    /// The type's name in messages, with its article.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

impl Node {
    /// JSON of which no lines are known.
    pub(crate) fn from_json(json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(b),
            Json::Number(n) => Value::Number(n),
            Json::String(s) => Value::String(s),
            Json::Array(items) => Value::List(items.into_iter().map(Self::from_json).collect()),
            Json::Object(fields) => {
                let field = |(key, value)| (key, Self::from_json(value));
                Value::Map(fields.into_iter().map(field).collect())
            }
        };
        Self { line: 0, value }
    }

    /// Line of the value at a path such as `a.b[0].c`, or of the innermost of its parents that is there; 0 when unknown.
    pub(crate) fn line_of(&self, path: &str) -> u32 {
        let (mut node, mut rest) = (self, path);
        while !rest.is_empty() {
            let inner = match &node.value {
                Value::Map(entries) => {
                    let key = rest.strip_prefix('.').unwrap_or(rest);
                    let after = |name: &str| {
                        let after = key.strip_prefix(name)?;
                        (after.is_empty() || after.starts_with(['.', '['])).then_some(after)
                    };
                    let found = entries.iter().filter(|(name, _)| after(name).is_some());
                    let longest = found.max_by_key(|(name, _)| name.len());
                    longest.and_then(|(name, node)| Some((node, after(name)?)))
                }
                Value::List(items) => rest.strip_prefix('[').and_then(|rest| {
                    let (number, rest) = rest.split_once(']')?;
                    Some((items.get(number.parse::<usize>().ok()?)?, rest))
                }),
                _ => None,
            };
            let Some((inner, after)) = inner else {
                break;
            };
            (node, rest) = (inner, after);
        }
        node.line
    }

    /// The value as plain JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(b) => (*b).into(),
            Value::Number(n) => n.clone().into(),
            Value::String(s) => s.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(k, v)| (k.clone(), v.to_json()))
                .collect(),
        }
    }
}

fn line_of<T>(spanned: &Spanned<T>) -> u32 {
    u32::try_from(spanned.referenced.line()).unwrap_or(u32::MAX)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            line: line_of(&spanned),
            value: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<Value, E> {
        Ok(Number::from_i128(v).map_or_else(|| Value::String(v.to_string()), Value::Number))
    }

    fn visit_u128<E>(self, v: u128) -> Result<Value, E> {
        Ok(Number::from_u128(v).map_or_else(|| Value::String(v.to_string()), Value::Number))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        let unnamed = || match v {
            v if v.is_nan() => "NaN",
            v if v > 0.0 => "+Inf",
            _ => "-Inf",
        };
        Ok(Number::from_f64(v).map_or_else(|| Value::String(unnamed().to_owned()), Value::Number))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Node>()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let mut node = map.next_value::<Node>()?;
            node.line = line_of(&key);
            entries.push((key.value, node));
        }
        Ok(Value::Map(entries))
    }
}
