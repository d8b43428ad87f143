//! The docs are in step: every flag, environment variable and metric is named where a user looks for it.

use crate::none;
use regex::Regex;
use std::collections::BTreeSet;
use xtask::{code, tree};

/// Where a user looks for flags and variables.
fn reference() -> String {
    tree::files()
        .into_iter()
        .filter(|f| {
            f.path == "README.md"
                || (f.path.starts_with("docs/reference/") && f.path.ends_with(".md"))
        })
        .map(|f| f.text)
        .collect()
}

/// Whether `text` has `word` with nothing of a word around it.
fn names(text: &str, word: &str) -> bool {
    let around = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
    text.match_indices(word).any(|(at, _)| {
        around(text[..at].chars().next_back()) && around(text[at + word.len()..].chars().next())
    })
}

/// The flags as clap makes them of `#[arg(long)] name` and `#[arg(long = "name")] field`.
fn flags() -> BTreeSet<String> {
    let arg =
        Regex::new(r"(?s)#\[arg\((?P<args>[^\]]*)\)\]\s*(?:pub(?:\([a-z]+\))? )?(?P<field>\w+):")
            .expect("a pattern");
    let long = Regex::new(r#"\blong(?:\s*=\s*"(?P<name>[\w-]+)")?"#).expect("a pattern");
    let mut flags = BTreeSet::new();
    for file in tree::rust_files()
        .iter()
        .filter(|f| f.path.starts_with("crates/router/src/"))
    {
        for found in arg.captures_iter(code::shipped_part(&file.path, &file.text)) {
            if let Some(long) = long.captures(&found["args"]) {
                let name = long.name("name").map_or_else(
                    || found["field"].replace('_', "-"),
                    |n| n.as_str().to_owned(),
                );
                flags.insert(name);
            }
        }
    }
    flags
}

fn literals(path: &str, pattern: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found = BTreeSet::new();
    for file in tree::rust_files()
        .iter()
        .filter(|f| f.path.starts_with(path))
    {
        let shipped = code::shipped_part(&file.path, &file.text);
        found.extend(pattern.captures_iter(shipped).map(|c| c[1].to_owned()));
    }
    found
}

#[test]
fn every_flag_is_documented() {
    let flags = flags();
    assert!(
        flags.contains("config-source") && flags.contains("served-model-name"),
        "flags were not found: {flags:?}"
    );
    let reference = reference();
    // A flag of one dash in Go's manner (`-v`) is documented with either.
    let named = |flag: &str| {
        names(&reference, &format!("--{flag}")) || names(&reference, &format!("-{flag}"))
    };
    let missing: Vec<_> = flags
        .iter()
        .filter(|f| !named(f))
        .map(|f| format!("--{f}"))
        .collect();
    none(
        "flags that neither README.md nor docs/reference names",
        &missing,
    );
}

#[test]
fn every_environment_variable_is_documented() {
    let variables = literals(
        "crates/router/src/env.rs",
        r#""([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)""#,
    );
    assert!(
        variables.contains("ACCESS_LOG_FORMAT"),
        "variables were not found: {variables:?}"
    );
    let reference = reference();
    let missing: Vec<_> = variables
        .into_iter()
        .filter(|v| !names(&reference, v))
        .collect();
    none(
        "environment variables that neither README.md nor docs/reference names",
        &missing,
    );
}

#[test]
fn every_metric_is_documented() {
    let registered = literals("crates/proxy/src/metrics/", r#"register\(\s*"([a-z_]+)""#);
    let encoded = literals("crates/proxy/src/metrics/", r#""(process_[a-z_]+)""#);
    assert!(
        registered.contains("prefix_cache_entries") && encoded.len() > 3,
        "metrics were not found: {registered:?}"
    );
    let page = tree::read("docs/reference/metrics.md").unwrap_or_default();
    // Counters are registered without the suffix that the text format adds.
    let named = |name: &str| names(&page, name) || names(&page, &format!("{name}_total"));
    let missing: Vec<_> = registered
        .iter()
        .map(|n| format!("kthena_router_{n}"))
        .chain(encoded)
        .filter(|n| !named(n))
        .collect();
    none(
        "metrics that docs/reference/metrics.md does not name",
        &missing,
    );
}
