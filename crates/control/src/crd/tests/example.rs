//! A spec made from its schema.

use serde_json::{Value, json};

/// A value with every field there is, at least one item in each list and one entry in each map.
pub(super) fn full(schema: &Value, path: &str) -> Value {
    match schema["type"].as_str() {
        Some("object") => object(schema, path),
        Some("array") => json!([full(&schema["items"], &format!("{path}[]"))]),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        Some("string") => match schema["enum"].as_array() {
            Some(choices) => choices[0].clone(),
            None => json!(text(path)),
        },
        other => panic!("{path} has the type {other:?}"),
    }
}

fn object(schema: &Value, path: &str) -> Value {
    if let Some(values) = schema.get("additionalProperties") {
        return json!({"key": full(values, &format!("{path}[]"))});
    }
    let properties = schema["properties"]
        .as_object()
        .expect("an object has properties");
    properties
        .iter()
        .map(|(name, property)| (name.clone(), full(property, &format!("{path}.{name}"))))
        .collect()
}

fn text(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("baseURL") => "https://example.com/v1",
        Some("timeout" | "retryInterval") => "1s",
        _ => "a",
    }
}
