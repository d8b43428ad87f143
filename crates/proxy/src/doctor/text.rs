//! Findings as a person reads them.

use super::{Facts, Finding, Severity};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Columns of a line.
const WIDTH: usize = 100;

/// What was examined, and what was found, in plain text.
#[must_use]
pub fn render(facts: &Facts, findings: &[Finding]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let mut summary = summary(findings);
    if findings.is_empty() && !facts.can_judge() {
        summary = "Nothing wrong so far: too few requests to judge by.".to_owned();
    }
    let _ = writeln!(out, "{summary}\n{}", examined(facts));
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

/// The same for programs; `judged` says whether there were enough requests to judge by.
#[must_use]
pub fn report(facts: &Facts, findings: &[Finding]) -> serde_json::Value {
    serde_json::json!({"findings": findings, "judged": facts.can_judge()})
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

/// A word without what a terminal would obey or turn around: names come from elsewhere.
fn harmless(word: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || turns
    };
    if !word.contains(obeyed) {
        return word.into();
    }
    let told = |c: char| match obeyed(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    word.chars().map(told).collect::<String>().into()
}

/// A label and a text beside it, broken at spaces.
fn block(out: &mut String, label: &str, text: &str) {
    const INDENT: usize = 10;
    let mut line = format!("{label:<INDENT$}");
    let mut used = INDENT;
    for word in text.split_whitespace() {
        let word = &harmless(word);
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
