//! The project speaks of itself alone: no machine's paths, no place to install from but Cargo's, no author's tools.

use crate::{none, place};
use regex::Regex;
use xtask::tree::{self, File};

/// Written by Cargo, with the registry in every entry.
const GENERATED: [&str; 1] = ["Cargo.lock"];

// Patterns in two halves: this file is searched too.
const MACHINE_PATHS: &str = concat!(
    r"(^|[^\w./~-])/(wo",
    "rk|ho",
    "me|ro",
    r"ot|fa",
    r"rm)(/|$|[^\w/-])"
);
const REGISTRIES: &str = concat!(
    r"(index|static)\.crates\.",
    r"io|pypi\.",
    r"org/simple|pythonhosted\.",
    r"org|registry\.npmjs\.",
    r"org|proxy\.golang\.",
    "org"
);
const TOOLS: &str = concat!(
    r"(?i)\bcla",
    r"ude\b|\bchat",
    r"gpt wrote\b|\bas an a",
    r"i\b|co-authored",
    "-by"
);

fn found(pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let lines = |file: &File| -> Vec<String> {
        let lines = file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| pattern.is_match(line));
        lines
            .map(|(n, line)| place(file, n, &line.chars().take(160).collect::<String>()))
            .collect()
    };
    let files = tree::files();
    files
        .iter()
        .filter(|f| !GENERATED.iter().any(|g| f.path.ends_with(g)))
        .flat_map(lines)
        .collect()
}

#[test]
fn no_paths_of_a_machine() {
    none("absolute paths of a machine", &found(MACHINE_PATHS));
}

#[test]
fn no_registries_to_install_from() {
    none("hosts of package registries", &found(REGISTRIES));
}

#[test]
fn no_word_of_the_tools_it_was_written_with() {
    none("words about the tools that wrote this", &found(TOOLS));
}
