//! Label and field selectors.

use serde_json::Value;

/// What of a kind's objects a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) namespace: Option<String>,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
}

impl Selector {
    pub(super) fn selects(&self, object: &Value) -> bool {
        let in_namespace = self
            .namespace
            .as_deref()
            .is_none_or(|n| object["metadata"]["namespace"] == n);
        in_namespace
            && parts(self.labels.as_deref()).all(|part| label(part, object))
            && parts(self.fields.as_deref()).all(|part| field(part, object))
    }
}

/// The requirements of a selector: separated by commas, those in parentheses left out.
fn parts(selector: Option<&str>) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let outside = move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    let text = selector.unwrap_or_default();
    text.split(outside).filter(|part| !part.is_empty())
}

fn label(requirement: &str, object: &Value) -> bool {
    let has = |key: &str| object["metadata"]["labels"][key].as_str();
    if let Some((key, values)) = requirement.split_once(" in (") {
        let mut values = values.trim_end_matches(')').split(',');
        return values.any(|value| has(key) == Some(value));
    }
    match requirement.split_once('=') {
        Some((key, value)) => has(key) == Some(value),
        None => has(requirement).is_some(),
    }
}

fn field(requirement: &str, object: &Value) -> bool {
    let (path, value) = requirement
        .split_once("!=")
        .unwrap_or_else(|| panic!("a field selector with !=, not {requirement}"));
    let found = path.split('.').fold(object, |at, name| &at[name]);
    found != value
}
