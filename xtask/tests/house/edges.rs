//! The boundaries between the crates, read from Cargo's own view of them. `ARCHITECTURE.md` gives the reasons.

use crate::none;
use serde_json::Value;
use std::process::Command;
use xtask::tree;

/// What one crate may use.
struct Edges {
    name: &'static str,
    /// Crates of this workspace.
    ours: &'static [&'static str],
    /// Crates of others: all there is, or all but some.
    others: Others,
}

enum Others {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}
use Others::{AllBut, Only};

const TABLE: [Edges; 8] = [
    Edges {
        name: "prefix-index",
        ours: &[],
        others: Only(&["hashbrown", "xxhash-rust", "smallvec", "parking_lot"]),
    },
    Edges {
        name: "routing",
        ours: &["prefix-index"],
        others: Only(&[
            "http",
            "serde",
            "serde_json",
            "thiserror",
            "arc-swap",
            "regex",
            "memchr",
            "simdutf8",
            "wide",
            "smallvec",
        ]),
    },
    Edges {
        name: "proxy",
        ours: &["routing", "prefix-index"],
        others: AllBut(&["kube", "k8s-openapi", "clap", "serde-saphyr"]),
    },
    Edges {
        name: "control",
        ours: &["routing"],
        others: AllBut(&["axum", "clap", "prometheus-client"]),
    },
    Edges {
        name: "sim",
        ours: &["routing", "prefix-index"],
        others: AllBut(&["kube", "clap", "serde-saphyr"]),
    },
    Edges {
        name: "kthena-router",
        ours: &["routing", "prefix-index", "proxy", "control", "sim"],
        others: AllBut(&[]),
    },
    // From outside only: over sockets, with the built binary.
    Edges {
        name: "e2e",
        ours: &[],
        others: AllBut(&[]),
    },
    Edges {
        name: "xtask",
        ours: &[],
        others: AllBut(&[]),
    },
];

fn metadata() -> Value {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(tree::root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn every_crate_keeps_to_its_edges() {
    let metadata = metadata();
    let mut broken = Vec::new();
    for package in list(&metadata["packages"]) {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(edges) = TABLE.iter().find(|e| e.name == name) else {
            broken.push(format!("{name} is not in the table of edges"));
            continue;
        };
        for dependency in list(&package["dependencies"]) {
            let used = dependency["name"].as_str().unwrap_or_default();
            // Tests may use any tool, but the two planes stay apart even there.
            let test_only = dependency["kind"] == "dev";
            let allowed = match (TABLE.iter().any(|e| e.name == used), &edges.others) {
                (true, _) if test_only => !matches!(
                    (name, used),
                    ("proxy", "control") | ("control" | "sim", "proxy")
                ),
                (true, _) => edges.ours.contains(&used),
                (false, _) if test_only => true,
                (false, Only(these)) => these.contains(&used),
                (false, AllBut(these)) => !these.contains(&used),
            };
            if !allowed {
                broken.push(format!("{name} uses {used}"));
            }
        }
    }
    none("dependencies that the architecture does not allow", &broken);
}

#[test]
fn control_serves_nothing() {
    let metadata = metadata();
    let control = list(&metadata["packages"])
        .iter()
        .find(|p| p["name"] == "control")
        .expect("control is a crate");
    let serving: Vec<_> = list(&control["dependencies"])
        .iter()
        .filter(|d| {
            d["kind"] != "dev" && d["name"].as_str().is_some_and(|n| n.starts_with("hyper"))
        })
        .flat_map(|d| {
            list(&d["features"])
                .iter()
                .filter_map(Value::as_str)
                .filter(|f| f.starts_with("server"))
        })
        .map(str::to_owned)
        .collect();
    none("features of an HTTP server in control", &serving);
}
