//! The schema and the reader say the same.

mod drift;
mod example;
mod structural;

use super::definitions;
use crate::node::Node;
use crate::problem::{Problem, Severity, Sink};
use crate::resources::{self, API_VERSION, Kind, Objects};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Schema of a whole object.
fn schema(kind: Kind) -> Value {
    let found = definitions()
        .into_iter()
        .find(|d| d["spec"]["names"]["kind"] == kind.as_str())
        .expect("every kind has a definition");
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Schema of its spec.
fn spec_schema(kind: Kind) -> Value {
    schema(kind)["properties"]["spec"].clone()
}

fn object(kind: Kind, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind.as_str(), "metadata": {"name": "x"}, "spec": spec})
}

/// What the reader makes of a spec.
struct Read {
    objects: Objects,
    problems: Vec<Problem>,
    /// Fields of the spec that were asked for, list indices and map keys taken out.
    asked: BTreeSet<String>,
}

fn read(kind: Kind, spec: &Value) -> Read {
    let sink = Sink::new("test".into());
    let mut objects = Objects::default();
    let node = Node::from_json(object(kind, spec));
    resources::read_document(&node, &sink, &mut objects);
    let brackets = regex::Regex::new(r"\[[^\]]*\]").expect("a pattern");
    let asked = sink
        .asked()
        .iter()
        .filter(|path| path.starts_with("spec."))
        .map(|path| brackets.replace_all(path, "[]").into_owned())
        .collect();
    Read {
        objects,
        problems: sink.into_problems(),
        asked,
    }
}

fn errors(kind: Kind, spec: &Value) -> Vec<String> {
    let problems = read(kind, spec).problems;
    let errors = problems.iter().filter(|p| p.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Calls `look` with each schema below this one, itself included, and the path of its values.
fn walk(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            walk(property, &format!("{path}.{name}"), look);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if schema.get(inner).is_some() {
            walk(&schema[inner], &format!("{path}[]"), look);
        }
    }
}
