//! What is wrong with a running router, and what to change: each row of the troubleshooting table as a check on live data.
//!
//! [`examine`] is pure: the [`Facts`] are what the debug pages and the metrics page say, whoever read them. The command
//! `kthena-router doctor` reads them over HTTP; `/debug/doctor` reads them in the process.
//!
//! A check that has too little to judge by says nothing.

mod coverage;
mod engines;
mod evictions;
mod exposition;
mod facts;
mod pods;
mod ratio;
mod replicas;
mod settings;
mod text;
mod weights;

pub use exposition::Exposition;
pub use facts::{
    Answers, Candidate, Configuration, Decision, Facts, Model, Pod, PodEntries, Prefix, Prompts,
    Replica, Resumes, RouterFacts, Spread, StartWarning, Weighted, Window, Windows, WorkingSet,
};
pub use text::{render, report};

use serde::Serialize;

/// Requests from which on a share says something.
const ENOUGH: usize = 10;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does not work as it is meant to.
    Problem,
    /// It works, and costs more than it needs to.
    Warning,
    /// It looks odd and is as expected.
    Note,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check that found it; stable, for scripts.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub title: String,
    /// What was seen that says so.
    pub evidence: String,
    /// What to change.
    pub advice: String,
}

impl Finding {
    /// Whether something should be changed.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.severity != Severity::Note
    }
}

/// All checks, the worst finding first.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let checks: [fn(&Facts) -> Vec<Finding>; 8] = [
        settings::check,
        pods::check,
        ratio::check,
        coverage::check,
        evictions::check,
        weights::check,
        engines::check,
        replicas::check,
    ];
    let mut found: Vec<_> = checks.iter().flat_map(|check| check(facts)).collect();
    found.sort_by_key(|finding| finding.severity);
    found
}
