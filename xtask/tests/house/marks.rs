//! Nothing unfinished, nothing switched off, nothing unsafe.

use crate::{none, place};
use regex::Regex;
use xtask::{code, tree};

fn in_code(pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found = Vec::new();
    for file in tree::rust_files() {
        let bare = code::without_comments_and_literals(&file.text);
        found.extend(
            bare.lines()
                .enumerate()
                .filter(|(_, l)| pattern.is_match(l))
                .map(|(n, l)| place(&file, n, l)),
        );
    }
    found
}

#[test]
fn nothing_is_left_to_do() {
    none("unfinished code", &in_code(r"\b(todo|unimplemented|dbg)!"));
    // Written in two halves, or this file would find itself.
    let marks =
        Regex::new(concat!(r"\b(FIX", "ME|XX", "X|HA", "CK|TO", r"DO)\b")).expect("a pattern");
    let mut found = Vec::new();
    for file in tree::rust_files() {
        found.extend(
            file.text
                .lines()
                .enumerate()
                .filter(|(_, l)| marks.is_match(l))
                .map(|(n, l)| place(&file, n, l)),
        );
    }
    none("left-over marks", &found);
}

/// A test that wants a program which is more than the toolchain is ignored where there is none, and nowhere else.
#[test]
fn no_test_is_skipped() {
    let mut found = in_code(r"#\[\s*(ignore\b|cfg_attr\(.*\bignore\b)");
    found.retain(|at| !at.contains("#[cfg_attr(not(redis_server), ignore = "));
    none("skipped tests", &found);
}

#[test]
fn nothing_is_unsafe() {
    none("unsafe code", &in_code(r"\bunsafe\b"));
}
