//! No test waits for time to pass, and none needs a port that something else may hold.
//!
//! A sleep is allowed in test code in two places: under paused time, where it takes no time (the file names
//! `start_paused`), and in one file of `crates/e2e`, whose polling helper watches processes from outside.

use crate::{none, place};
use regex::Regex;
use xtask::{code, tree};

#[test]
fn tests_do_not_sleep() {
    let sleep = Regex::new(r"\bsleep(_until|_ms)?\(").expect("a pattern");
    let blocking = Regex::new(r"\bthread::sleep\b").expect("a pattern");
    let mut found = Vec::new();
    let mut pollers = Vec::new();
    for file in tree::rust_files() {
        let bare = code::without_comments_and_literals(&file.text);
        let tests = code::test_part(&file.path, &bare);
        let skipped = bare[..bare.len() - tests.len()].matches('\n').count();
        let paused = tests.contains("start_paused") || tests.contains("time::pause()");
        let bad: Vec<_> = tests
            .lines()
            .enumerate()
            .filter(|(_, line)| sleep.is_match(line) && (!paused || blocking.is_match(line)))
            .map(|(n, line)| place(&file, skipped + n, line))
            .collect();
        if bad.is_empty() {
            continue;
        }
        if file.path.starts_with("crates/e2e/") {
            pollers.push(bad)
        } else {
            found.extend(bad)
        }
    }
    if pollers.len() > 1 {
        found.extend(pollers.into_iter().flatten());
    }
    none(
        "sleeps in tests (wait for a condition, or pause time)",
        &found,
    );
}

#[test]
fn tests_take_free_ports() {
    // bind("127.0.0.1:8080"), bind(("127.0.0.1", 8080)); "--port=8080", "--port", "8080".
    let fixed = Regex::new(
        r#"(?x)
          bind \w* \( [^)]* (:[1-9]\d* | ,\s*[1-9]\d*) ["\s)]
        | "--(metrics-|debug-)?port (=|",\s*") [1-9]
        "#,
    )
    .expect("a pattern");
    let mut found = Vec::new();
    for file in tree::rust_files()
        .iter()
        .filter(|f| !f.path.starts_with("xtask/"))
    {
        let tests = code::test_part(&file.path, &file.text);
        let skipped = file.text[..file.text.len() - tests.len()]
            .matches('\n')
            .count();
        found.extend(
            tests
                .lines()
                .enumerate()
                .filter(|(_, l)| fixed.is_match(l))
                .map(|(n, l)| place(file, skipped + n, l)),
        );
    }
    none("fixed ports in tests (take port 0)", &found);
}
