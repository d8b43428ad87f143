//! The CustomResourceDefinitions of the three kinds, generated from the types in this folder.
//!
//! The types are descriptions: their fields, bounds and doc comments become the schema that an API server validates and
//! `kubectl explain` shows. What the router reads is read by [`crate::resources`], which also knows lines and rules that
//! a schema cannot say. Tests hold the two together in both directions: the reader knows every field of the schema and no
//! other, and refuses what the schema refuses.
//!
//! Field names, defaults, bounds, patterns and CEL rules are those of the original router's definitions, so that a
//! manifest that is valid there is valid here; the descriptions are our own.

mod external_provider;
mod model_route;
mod model_server;
mod schema;
mod status;
#[cfg(test)]
mod tests;

use crate::resources::{API_VERSION, Kind};
use serde_json::{Value, json};

/// The definitions as one YAML text of several documents, ready for `kubectl apply`.
///
/// # Errors
/// None that can come from these types; the writer's type has one.
pub fn yaml() -> Result<String, serde_saphyr::ser_error::Error> {
    let mut text = String::new();
    for definition in definitions() {
        text += "---\n";
        text += &serde_saphyr::to_string(&definition)?;
    }
    Ok(text)
}

/// The definitions of every kind, as an API server takes them.
#[must_use]
pub fn definitions() -> Vec<Value> {
    vec![
        definition(
            Kind::ModelServer,
            "A group of pods that serve one model.",
            &schema::of::<model_server::ModelServerSpec>(),
            &schema::of::<status::ModelServerStatus>(),
            &model_server::columns(),
        ),
        definition(
            Kind::ModelRoute,
            "Which requests go to which model servers.",
            &schema::of::<model_route::ModelRouteSpec>(),
            &schema::of::<status::Status>(),
            &json!([age()]),
        ),
        definition(
            Kind::ExternalModelProvider,
            "A hosted model outside of the cluster.",
            &schema::of::<external_provider::ExternalModelProviderSpec>(),
            &schema::of::<status::Status>(),
            &json!([age()]),
        ),
    ]
}

fn definition(
    kind: Kind,
    description: &str,
    spec: &Value,
    status: &Value,
    columns: &Value,
) -> Value {
    let (group, version) = API_VERSION.split_once('/').unwrap_or((API_VERSION, ""));
    let singular = kind.as_str().to_ascii_lowercase();
    let plural = kind.plural();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {
                "kind": kind.as_str(),
                "listKind": format!("{}List", kind.as_str()),
                "plural": plural,
                "singular": singular,
            },
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string", "description": format!("`{API_VERSION}`.")},
                        "kind": {"type": "string", "description": format!("`{}`.", kind.as_str())},
                        "metadata": {"type": "object"},
                        "spec": spec,
                        "status": status,
                    },
                }},
            }],
        },
    })
}

/// The column that `kubectl get` shows for every built-in kind.
fn age() -> Value {
    json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
}
