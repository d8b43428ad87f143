//! Findings as a person reads them.

use super::{Facts, Finding, Severity};
use std::fmt::Write as _;

/// Columns of a line.
const WIDTH: usize = 100;

/// What was examined, and what was found, in plain text.
#[must_use]
pub fn render(facts: &Facts, findings: &[Finding]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}\n{}", summary(findings), examined(facts));
    for finding in findings {
        let kind = match finding.severity {
            Severity::Problem => "PROBLEM",
            Severity::Warning => "WARNING",
            Severity::Note => "NOTE",
        };
        out.push('\n');
        block(
            &mut out,
            kind,
            &format!("{} [{}]", finding.title, finding.check),
        );
        block(&mut out, "  seen", &finding.evidence);
        block(&mut out, "  advice", &finding.advice);
    }
    out
}

fn summary(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let parts: Vec<_> = [
        (Severity::Problem, "problem"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ]
    .into_iter()
    .filter_map(|(severity, word)| match count(severity) {
        0 => None,
        n => Some(counted(n, word)),
    })
    .collect();
    match parts.is_empty() {
        true => "Nothing wrong.".to_owned(),
        false => format!("Found {}.", parts.join(", ")),
    }
}

fn examined(facts: &Facts) -> String {
    let window = facts.prefix.ratio.fifteen;
    let ratio = match window.ratio {
        Some(ratio) => format!("match ratio {ratio:.2}"),
        None => "no match ratio yet".to_owned(),
    };
    format!(
        "Examined {}, {}, {}; in 15 minutes {}, {ratio}; {} entries.",
        counted(facts.pods.len(), "pod"),
        counted(facts.replicas.len(), "replica"),
        counted(facts.decisions.len(), "decision"),
        counted(
            usize::try_from(window.requests).unwrap_or(usize::MAX),
            "scored request"
        ),
        facts.prefix.entries,
    )
}

fn counted(n: usize, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    }
}

/// A label and a text beside it, broken at spaces.
fn block(out: &mut String, label: &str, text: &str) {
    const INDENT: usize = 10;
    let mut line = format!("{label:<INDENT$}");
    let mut used = INDENT;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > INDENT && used + 1 + length > WIDTH {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(INDENT);
            used = INDENT;
        }
        if used > INDENT {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    let _ = writeln!(out, "{line}");
}
