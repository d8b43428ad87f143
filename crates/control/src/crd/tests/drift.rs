//! Neither knows a field, a bound or a default that the other does not know.

use super::example::full;
use super::{Read, errors, object, read, schema, spec_schema, walk};
use crate::resources::Kind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A spec with every field that can be set together.
fn valid(kind: Kind) -> Value {
    let mut spec = full(&spec_schema(kind), "spec");
    if kind == Kind::ModelRoute {
        let target = spec
            .pointer_mut("/rules/0/targetModels/0")
            .expect("a target");
        target
            .as_object_mut()
            .expect("an object")
            .remove("externalModelProviderName");
        target["weight"] = json!(1);
    }
    spec
}

#[test]
fn the_reader_knows_the_fields_of_the_schema_and_no_others() {
    for kind in Kind::ALL {
        let mut fields = BTreeSet::new();
        walk(&spec_schema(kind), "spec", &mut |path, _| {
            if path != "spec" && !path.ends_with("[]") {
                fields.insert(path.to_owned());
            }
        });
        let everything = full(&spec_schema(kind), "spec");
        let Read { asked, .. } = read(kind, &everything);
        assert_eq!(asked, fields, "{kind:?}");
    }
}

#[test]
fn a_spec_with_every_field_is_valid_to_both() {
    for kind in Kind::ALL {
        assert_eq!(errors(kind, &valid(kind)), Vec::<String>::new());
        let validator = jsonschema::validator_for(&schema(kind)).expect("a schema");
        let object = object(kind, &valid(kind));
        let found: Vec<_> = validator
            .iter_errors(&object)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(found, Vec::<String>::new(), "{kind:?}");
    }
}

/// JSON pointers of the values that a path of a schema stands for; `None` where this spec has none.
fn pointer(path: &str) -> String {
    path.trim_start_matches("spec")
        .replace("[]", "/0")
        .replace('.', "/")
}

/// Values that a schema must refuse, one for each of its bounds.
fn refused(schema: &Value) -> Vec<Value> {
    let mut values = vec![match schema["type"].as_str() {
        Some("string") => json!(1),
        _ => json!("text"),
    }];
    let number = |key: &str| schema[key].as_u64();
    let letters = |count: u64| json!("a".repeat(usize::try_from(count).expect("small")));
    values.extend(schema.get("enum").map(|_| json!("nothing-known")));
    values.extend(schema["minimum"].as_i64().map(|min| json!(min - 1)));
    values.extend(schema["maximum"].as_i64().map(|max| json!(max + 1)));
    values.extend(number("maxLength").map(|max| letters(max + 1)));
    values.extend(number("minLength").map(|min| letters(min - 1)));
    values.extend(schema.get("pattern").map(|_| json!("-http://-")));
    values.extend(number("minItems").map(|_| json!([])));
    values
}

/// A list of one more item than is allowed.
fn too_many(schema: &Value, item: &Value) -> Option<Value> {
    let max = usize::try_from(schema["maxItems"].as_u64()?).expect("small");
    Some(vec![item.clone(); max + 1].into())
}

/// Maps have the key `key`, lists the index 0.
fn at<'v>(spec: &'v mut Value, pointer: &str) -> Option<&'v mut Value> {
    let mut found = spec;
    for step in pointer.split('/').skip(1) {
        found = match found {
            Value::Array(items) => items.first_mut()?,
            Value::Object(fields) => fields.get_mut(if step == "0" { "key" } else { step })?,
            _ => return None,
        };
    }
    Some(found)
}

#[test]
fn the_reader_refuses_what_the_schema_refuses() {
    for kind in Kind::ALL {
        let validator = jsonschema::validator_for(&schema(kind)).expect("a schema");
        let mut tried = 0;
        let mut accepted = Vec::new();
        let mut check = |path: &str, what: &str, spec: &Value| {
            assert!(
                !validator.is_valid(&object(kind, spec)),
                "{path}: the schema accepts {what}"
            );
            tried += 1;
            if errors(kind, spec).is_empty() {
                accepted.push(format!("{path}: {what}"));
            }
        };
        walk(&spec_schema(kind), "spec", &mut |path, schema| {
            let pointer = pointer(path);
            let mut spec = valid(kind);
            let Some(place) = at(&mut spec, &pointer) else {
                return;
            };
            let mut values = refused(schema);
            values.extend(place.get(0).and_then(|item| too_many(schema, item)));
            for value in values {
                let mut spec = valid(kind);
                *at(&mut spec, &pointer).expect("it is there") = value.clone();
                check(path, &value.to_string(), &spec);
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().expect("a name");
                let mut spec = valid(kind);
                let place = at(&mut spec, &pointer).expect("it is there");
                place.as_object_mut().expect("an object").remove(name);
                check(path, &format!("no {name}"), &spec);
            }
        });
        assert_eq!(accepted, Vec::<String>::new(), "{kind:?}");
        assert!(tried > 20, "{kind:?}: {tried} bounds were tried");
    }
}

/// What an object means, without the text that it was read from.
fn meaning(kind: Kind, spec: &Value) -> String {
    let Read {
        objects, problems, ..
    } = read(kind, spec);
    let errors: Vec<_> = problems.iter().filter(|p| p.is_error()).collect();
    match kind {
        Kind::ModelServer => {
            let s = &objects.servers[0];
            format!(
                "{errors:?} {:?} {:?} {:?}",
                s.policy, s.kv_connector, s.port
            )
        }
        Kind::ModelRoute => {
            let r = &objects.routes[0];
            format!("{errors:?} {:?} {:?}", r.route.rules, r.rate_limit)
        }
        Kind::ExternalModelProvider => format!("{errors:?} {:?}", objects.providers[0]),
    }
}

#[test]
fn a_default_of_the_schema_is_what_the_reader_takes_for_nothing() {
    let mut tried = Vec::new();
    for kind in Kind::ALL {
        walk(&spec_schema(kind), "spec", &mut |path, schema| {
            let Some(default) = schema.get("default") else {
                return;
            };
            // The Secret's name is required; the original's schema has a default for it all the same.
            if path == "spec.auth.secretRef.name" {
                return;
            }
            let pointer = pointer(path);
            let (parent, name) = pointer.rsplit_once('/').expect("a field");
            let mut with = valid(kind);
            *at(&mut with, &pointer).expect("it is there") = default.clone();
            let mut without = valid(kind);
            let fields = at(&mut without, parent).and_then(Value::as_object_mut);
            fields.expect("an object").remove(name);
            assert_eq!(meaning(kind, &with), meaning(kind, &without), "{path}");
            tried.push(path.to_owned());
        });
    }
    for known in [
        "spec.rules[].targetModels[].weight",
        "spec.kvConnector.type",
    ] {
        assert!(tried.iter().any(|path| path == known), "{tried:?}");
    }
}
