//! Small files with one purpose, said in their first line; every crate under the workspace's lints.

use crate::none;
use xtask::{code, tree};

/// Lines of a source file, at most. There is no list of exceptions: a longer file has two purposes.
const MAX_LINES: usize = 500;

#[test]
fn every_source_file_is_short() {
    let long: Vec<_> = tree::rust_files()
        .iter()
        .map(|f| (f.text.lines().count(), &f.path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    none("source files above 500 lines", &long);
}

#[test]
fn every_source_file_says_what_it_is() {
    let silent: Vec<_> = tree::rust_files()
        .iter()
        .filter(|f| {
            let first = f.text.lines().next().unwrap_or("");
            let in_src =
                f.path.split('/').any(|part| part == "src") && !code::is_test_file(&f.path);
            let documented = first.starts_with("//!");
            let plain =
                first.starts_with("#!") || first.starts_with("#[") || first.starts_with("use ");
            !documented && (in_src || !plain)
        })
        .map(|f| f.path.clone())
        .collect();
    none(
        "files of src/ begin with `//!`, tests also with an attribute or `use`",
        &silent,
    );
}

#[test]
fn every_crate_inherits_the_lints() {
    let manifests: Vec<_> = tree::files()
        .into_iter()
        .filter(|f| {
            f.path.ends_with("/Cargo.toml")
                && (f.path.starts_with("crates/") || f.path.starts_with("xtask/"))
        })
        .collect();
    assert!(manifests.len() >= 7, "the manifests were not found");
    let free: Vec<_> = manifests
        .iter()
        .filter(|f| !f.text.contains("[lints]\nworkspace = true"))
        .map(|f| f.path.clone())
        .collect();
    none("crates without `[lints] workspace = true`", &free);
    let root = tree::read("Cargo.toml").unwrap_or_default();
    assert!(
        root.contains("unsafe_code = \"forbid\""),
        "the workspace forbids unsafe code"
    );
}
