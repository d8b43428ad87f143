//! The rules that this project keeps, held by plain `cargo test`. `CONTRIBUTING.md` lists them in a few lines.

mod docs;
mod edges;
mod marks;
mod purity;
mod shape;
mod spec_rows;
mod waits;
mod words;

use xtask::tree::File;

/// `path:line: text`, for a message that an editor can jump to.
fn place(file: &File, line: usize, text: &str) -> String {
    format!("{}:{}: {}", file.path, line + 1, text.trim())
}

/// Fails with every finding, one a line.
fn none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
