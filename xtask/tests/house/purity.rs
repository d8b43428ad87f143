//! Decisions are replayable: same input, same plan. So the deciding crates read no clock, draw no randomness of their
//! own and do no IO; what they need of either is passed in.

use crate::{none, place};
use regex::Regex;
use xtask::{code, tree};

/// What a deciding crate does not say outside its tests.
const IMPURE: &str = r"(?x)
    \b(Instant|SystemTime)::now \b
  | \b(rand|fastrand|getrandom|tokio|hyper|tracing|prometheus_client)::
  | \bRandomState\b
  | \bthread_rng\b
  | \bstd::(fs|net|env|process|thread::sleep)\b
  | \basync\s+(fn|move|\{)
";

#[test]
fn deciding_crates_are_pure() {
    let impure = Regex::new(IMPURE).expect("a pattern");
    let mut looked_at = 0;
    let mut found = Vec::new();
    for file in tree::rust_files() {
        if !file.path.starts_with("crates/routing/src/")
            && !file.path.starts_with("crates/prefix-index/src/")
        {
            continue;
        }
        looked_at += 1;
        let bare = code::without_comments_and_literals(&file.text);
        let shipped = code::shipped_part(&file.path, &bare);
        found.extend(
            shipped
                .lines()
                .enumerate()
                .filter(|(_, l)| impure.is_match(l))
                .map(|(n, l)| place(&file, n, l)),
        );
    }
    assert!(looked_at > 10, "the deciding crates were not found");
    none(
        "clocks, randomness or IO in routing or prefix-index",
        &found,
    );
}
