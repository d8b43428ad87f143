//! Reading fields of a JSON body as leniently as the engine's schema does, with its errors.

use serde_json::{Map, Value};

use super::error::ApiError;

/// The fields of a request.
pub(super) type Fields = Map<String, Value>;

/// Parses a body into its fields.
pub(super) fn fields(body: &[u8]) -> Result<Fields, ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| ApiError::unparsable())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.is_empty() {
        return Err(ApiError::schema(
            "missing",
            "body",
            "Field required",
            "None",
        ));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(ApiError::schema(
            "model_attributes_type",
            "body",
            "Input should be a valid dictionary or object to extract fields from",
            &shown(&other),
        )),
        Err(error) => Err(ApiError::invalid_json(position(text, &error))),
    }
}

/// Byte offset of a syntax error.
fn position(text: &str, error: &serde_json::Error) -> usize {
    let lines = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    (before + error.column()).min(text.len())
}

/// A value as the schema's errors show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("<list of {} items>", items.len()),
        Value::Object(fields) => format!("<dict of {} items>", fields.len()),
        Value::String(text) => text.clone(),
        Value::Null => "None".to_owned(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
        Value::Number(number) => number.to_string(),
    }
}

/// The error of a required field that is not there.
pub(super) fn missing(fields: &Fields, name: &str) -> ApiError {
    let input = format!("<dict of {} items>", fields.len());
    ApiError::schema("missing", &format!("body.{name}"), "Field required", &input)
}

/// The error of a field that is no list.
pub(super) fn not_a_list(name: &str, value: &Value) -> ApiError {
    ApiError::schema(
        "list_type",
        &format!("body.{name}"),
        "Input should be a valid list",
        &shown(value),
    )
}

/// A whole number, also when written as a string; `None` when absent or null.
pub(super) fn integer(fields: &Fields, name: &str) -> Result<Option<i64>, ApiError> {
    let parsed = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_i64().or_else(|| {
            number
                .as_f64()
                .filter(|value| value.fract() == 0.0)
                .map(|value| value as i64)
        }),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    parsed.map(Some).ok_or_else(|| {
        ApiError::schema(
            "int_parsing",
            &format!("body.{name}"),
            "Input should be a valid integer, unable to parse string as an integer",
            &fields.get(name).map_or_else(String::new, shown),
        )
    })
}

/// A flag; false when absent or null.
pub(super) fn flag(fields: &Fields, name: &str) -> Result<bool, ApiError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::Number(number)) if number.as_i64() == Some(1) => Ok(true),
        Some(Value::Number(number)) if number.as_i64() == Some(0) => Ok(false),
        Some(Value::String(text))
            if ["true", "1", "yes", "on"].contains(&text.to_lowercase().as_str()) =>
        {
            Ok(true)
        }
        Some(Value::String(text))
            if ["false", "0", "no", "off"].contains(&text.to_lowercase().as_str()) =>
        {
            Ok(false)
        }
        Some(other) => Err(ApiError::schema(
            "bool_parsing",
            &format!("body.{name}"),
            "Input should be a valid boolean, unable to interpret input",
            &shown(other),
        )),
    }
}

/// A string; `None` when absent or null.
pub(super) fn string<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a str>, ApiError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(ApiError::schema(
            "string_type",
            &format!("body.{name}"),
            "Input should be a valid string",
            &shown(other),
        )),
    }
}

/// The text of a message's content: a string, or the text parts of a list, one a line.
pub(super) fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part.get("text").and_then(Value::as_str))
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
