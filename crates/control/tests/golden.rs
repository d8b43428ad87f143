//! What is said about bad manifests, word for word.

use control::{Problem, files};
use std::path::Path;

fn listed(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        text += &format!("{}: {problem}\n", problem.severity.as_str());
    }
    text
}

#[test]
fn bad_manifests_are_reported_in_full() {
    // Relative, so that the names in the text are the same everywhere: tests run in the folder of their crate.
    let problems = files::load(Path::new("tests/bad")).unwrap_err();
    let text = listed(&problems);
    assert!(
        !text.contains("hunter2") && !text.contains("271828") && !text.contains("password"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}
