//! The rules that an API server holds a CustomResourceDefinition to.
//!
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use super::{schema, walk};
use crate::crd::definitions;
use crate::resources::Kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use std::collections::BTreeSet;

const KEYWORDS: &[&str] = &[
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

#[test]
fn every_schema_is_structural() {
    for kind in Kind::ALL {
        walk(&schema(kind), kind.as_str(), &mut |path, schema| {
            let fields = schema.as_object().expect("a schema is an object");
            let odd: Vec<_> = fields
                .keys()
                .filter(|k| !KEYWORDS.contains(&k.as_str()))
                .collect();
            assert!(odd.is_empty(), "{path}: {odd:?}");
            let both =
                fields.contains_key("properties") && fields.contains_key("additionalProperties");
            assert!(!both, "{path} has properties and additionalProperties");
            let kind_of_value = schema["type"].as_str().expect("a type");
            assert_eq!(
                kind_of_value == "array",
                fields.contains_key("items"),
                "{path}"
            );
            let formats = ["int32", "int64", "date-time"];
            if let Some(format) = fields.get("format") {
                assert!(
                    formats.iter().any(|known| format == known),
                    "{path}: {format}"
                );
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().expect("a name");
                let property = &schema["properties"][name];
                assert!(
                    property.is_object(),
                    "{path}: {name} is required and unknown"
                );
                assert!(
                    property.get("default").is_none(),
                    "{path}: {name} is required and has a default"
                );
            }
        });
    }
}

#[test]
fn every_default_is_valid_where_it_stands() {
    let mut seen = 0;
    for kind in Kind::ALL {
        walk(&schema(kind), kind.as_str(), &mut |path, schema| {
            if let Some(default) = schema.get("default") {
                assert!(jsonschema::is_valid(schema, default), "{path}: {default}");
                seen += 1;
            }
        });
    }
    assert!(seen > 8, "{seen} defaults");
}

#[test]
fn every_field_is_explained() {
    for kind in Kind::ALL {
        walk(&schema(kind), kind.as_str(), &mut |path, schema| {
            let object = path.matches('.').count() <= 1 || path.ends_with("[]");
            assert!(
                object || schema["description"].as_str().is_some_and(|d| d.len() > 4),
                "{path} has no description"
            );
        });
    }
}

/// The same with every number as a text: Kubernetes' type has bounds as floating point numbers.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map(|n| n.to_string()).into(),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), plain(v))).collect(),
        other => other.clone(),
    }
}

#[test]
fn kubernetes_own_type_holds_all_of_a_definition() {
    let mut names = BTreeSet::new();
    for definition in definitions() {
        let typed: CustomResourceDefinition =
            serde_json::from_value(definition.clone()).expect("a CustomResourceDefinition");
        names.insert(typed.metadata.name.clone().expect("a name"));
        let again = serde_json::to_value(&typed).expect("JSON");
        assert_eq!(plain(&again), plain(&definition), "nothing was lost");
    }
    let expected = ["externalmodelproviders", "modelroutes", "modelservers"];
    let expected = expected.map(|plural| format!("{plural}.networking.serving.volcano.sh"));
    assert_eq!(names, BTreeSet::from(expected));
}

#[test]
fn columns_and_subresource_are_those_of_the_original() {
    for definition in definitions() {
        let version = &definition["spec"]["versions"][0];
        assert_eq!(version["subresources"], serde_json::json!({"status": {}}));
        let columns: Vec<_> = version["additionalPrinterColumns"]
            .as_array()
            .expect("columns")
            .iter()
            .map(|column| column["name"].as_str().expect("a name"))
            .collect();
        let expected: &[&str] = match definition["spec"]["names"]["kind"].as_str() {
            Some("ModelServer") => &["Engine", "Port", "Protocol", "Age"],
            _ => &["Age"],
        };
        assert_eq!(columns, expected);
    }
}
