//! The committed definitions, and the examples against them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use control::crd;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn committed() -> String {
    let folder = root().join("charts/kthena-router/crds");
    let file = folder.join("networking.serving.volcano.sh.yaml");
    fs::read_to_string(file).expect("the chart has the definitions")
}

#[test]
fn the_chart_has_what_the_command_prints() {
    assert!(
        committed() == crd::yaml().unwrap(),
        "run `kthena-router crds > charts/kthena-router/crds/networking.serving.volcano.sh.yaml`"
    );
}

#[test]
fn the_yaml_says_what_the_definitions_say() {
    let read: Vec<Value> = serde_saphyr::from_multiple(&committed()).unwrap();
    assert_eq!(read, crd::definitions());
}

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests(&path, found);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn the_examples_are_valid() {
    let definitions = crd::definitions();
    let mut paths = Vec::new();
    manifests(&root().join("examples"), &mut paths);
    let mut checked = 0;
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for object in objects {
            let definition = definitions
                .iter()
                .find(|d| d["spec"]["names"]["kind"] == object["kind"]);
            let Some(definition) = definition else {
                continue;
            };
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            if let Err(error) = jsonschema::validate(schema, &object) {
                panic!("{}: {}: {error}", path.display(), error.instance_path());
            }
            checked += 1;
        }
    }
    assert!(checked >= 6, "{checked} objects were checked");
}
