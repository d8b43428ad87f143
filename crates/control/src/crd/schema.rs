//! From a Rust type to a structural schema.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of a type in the form that a CustomResourceDefinition takes: nothing refers to anything, and a field that
/// may be left out may not be null instead.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    schema
}

/// Takes out what an `Option` adds, titles, and the line breaks of doc comments.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // `title` with a text is schemars' own; a property of that name would be an object.
            fields.retain(|key, value| !(key == "title" && value.is_string()));
            if let Some(Value::Array(choices)) = fields.get_mut("enum") {
                choices.retain(|choice| !choice.is_null());
            }
            if let Some(value @ Value::Array(_)) = fields.get_mut("type") {
                not_null(value);
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// `["string", "null"]` to `"string"`.
fn not_null(types: &mut Value) {
    let mut rest = types.as_array_mut().map(std::mem::take).unwrap_or_default();
    rest.retain(|name| name != "null");
    *types = match rest.pop() {
        Some(only) if rest.is_empty() => only,
        last => rest.into_iter().chain(last).collect(),
    };
}
