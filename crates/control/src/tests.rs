//! Hostile files: no panic, bounded memory.

use crate::files::{self, Reading};
use crate::yaml::{self, MAX_FILE_BYTES};
use proptest::prelude::*;

const GOOD: &str = include_str!("../../../examples/standalone/rules.yaml");

fn load(content: impl Into<Vec<u8>>) {
    let reading = Reading {
        files: vec![("f.yaml".into(), content.into())],
        unread: Vec::new(),
    };
    if let Err(problems) = files::parse(&reading) {
        assert!(problems.iter().any(|p| p.is_error()));
        for problem in problems {
            assert!(!problem.to_string().contains('\n'), "{problem}");
        }
    }
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        load(bytes);
    }

    #[test]
    fn yaml_soup_never_panics(text in "([a-c&*!|>%@`'\"#{}\\[\\],:?\n\t -]|<<|---\n|\\.nan|: |- ){0,80}") {
        load(text);
    }

    #[test]
    fn edited_manifests_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, "[a-z0-9:{}\\[\\]\n ~'\"-]{0,6}"), 1..6)) {
        let mut text = GOOD.as_bytes().to_vec();
        for (at, cut, put) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len() - 1).max(at);
            text.splice(at..end, put.into_bytes());
        }
        load(text);
    }
}

#[test]
fn aliases_cannot_multiply_a_long_text() {
    let long = "x".repeat(1 << 20);
    let aliases = "*a, ".repeat(90);
    let error = yaml::documents(format!("a: &a {long}\nb: [{aliases}]\n").as_bytes()).unwrap_err();
    assert!(
        error.line == 2 && error.message.contains("too large"),
        "{error:?}"
    );
}

#[test]
fn one_anchor_may_be_used_often() {
    let text = format!("a: &a {{k: v}}\nb: [{}]\n", "*a, ".repeat(10_000));
    assert_eq!(yaml::documents(text.as_bytes()).map(|d| d.len()), Ok(1));
}

#[test]
fn nested_aliases_are_bounded() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        text += &format!("a{level}: &a{level} [{below}]\n");
    }
    assert!(yaml::documents(text.as_bytes()).is_err());
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for text in [
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
        "? ".repeat(10_000),
    ] {
        assert!(yaml::documents(text.as_bytes()).is_err());
    }
}

#[test]
fn a_file_that_is_too_large_is_an_error() {
    let error = yaml::documents(&vec![b'#'; MAX_FILE_BYTES + 1]).unwrap_err();
    assert_eq!(error.message, "the file is larger than 16 MiB");
}
