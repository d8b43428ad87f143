//! Every row of the specification has a test that carries its id: `c3_score_is_floor_of_matched_over_hashed`.

use crate::none;
use regex::Regex;
use std::collections::BTreeSet;
use xtask::{code, tree};

/// Rows in scope.
const ROWS: &str = "A1 A2 A3 A4 A5 A6 A7 B1 B2 B3 B4 B5 B6 C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 D1 D2 D3 D4 D5 D6 D7 E1 E2 E3 E4 E5 \
                    F1 F2 F3 F4 F5 F6 F7 F8 F9 G1 G2 G3 G4 H1 H2 I1 I2 I3 I4 I5 J1 J2 J3 J5 J6";

/// Rows that later work brings, and why not now.
const LATER: [(&str, &str); 1] = [("J4", "kvcache-aware needs the engines' KV events")];

fn tested() -> BTreeSet<String> {
    let test = Regex::new(r"(?m)^\s*(?:async\s+)?fn ([a-j]\d+)_\w+").expect("a pattern");
    let mut ids = BTreeSet::new();
    for file in tree::rust_files()
        .iter()
        .filter(|f| f.path.starts_with("crates/"))
    {
        let bare = code::without_comments_and_literals(&file.text);
        let part = code::test_part(&file.path, &bare);
        for found in test.captures_iter(part) {
            let before = found.get(0).map_or(0, |m| m.start());
            // The attribute stands on one of the few lines before; without it the function is a helper.
            let attributes = part[..before]
                .lines()
                .rev()
                .take_while(|l| !l.trim().is_empty() && l.trim() != "}");
            if attributes
                .take(4)
                .any(|l| l.contains("test]") || l.contains("test("))
            {
                ids.insert(found[1].to_uppercase());
            }
        }
    }
    ids
}

#[test]
fn every_row_in_scope_has_a_test() {
    let tested = tested();
    let missing: Vec<_> = ROWS
        .split_whitespace()
        .filter(|id| !tested.contains(*id))
        .map(str::to_owned)
        .collect();
    none(
        "rows of the specification without a test that begins with their id",
        &missing,
    );
}

#[test]
fn every_id_of_a_test_is_a_row() {
    let known: BTreeSet<_> = ROWS
        .split_whitespace()
        .chain(LATER.iter().map(|(id, _)| *id))
        .map(str::to_owned)
        .collect();
    let unknown: Vec<_> = tested().difference(&known).cloned().collect();
    none(
        "tests named after rows that the specification does not have",
        &unknown,
    );
}
