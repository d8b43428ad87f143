//! The configuration: what was ignored at the start, and what is not enabled.

use super::{Facts, Finding, Severity, StartWarning};

const RESTART: &str =
    "Configuration is read at the start only: kubectl rollout restart deployment/kthena-router.";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let warned = facts.router.warnings.iter().map(warned);
    warned
        .chain(not_enabled(facts))
        .chain(not_restarted(facts))
        .collect()
}

fn warned(warning: &StartWarning) -> Finding {
    let (check, title, advice) = match warning.kind.as_str() {
        "unknown-argument" => (
            "misspelled-argument",
            "An argument of a plugin is misspelled, and ignored",
            format!("Correct its name in pluginConfig. {RESTART}"),
        ),
        "bad-arguments" => (
            "bad-arguments",
            "Arguments of a plugin cannot be read; all of them are at their defaults",
            format!("Write all arguments as integers, without quotes. {RESTART}"),
        ),
        "unknown-plugin" => (
            "unknown-plugin",
            "A plugin that does not exist is configured, and skipped",
            format!("Correct its name, or remove it. {RESTART}"),
        ),
        _ => (
            "configuration",
            "A part of the configuration has no effect",
            format!("`kthena-router validate --strict` names all such places. {RESTART}"),
        ),
    };
    Finding {
        check,
        severity: Severity::Problem,
        title: title.to_owned(),
        evidence: warning.text.clone(),
        advice,
    }
}

fn not_restarted(facts: &Facts) -> Option<Finding> {
    (facts.router.configuration_changed == Some(true)).then(|| Finding {
        check: "not-restarted",
        severity: Severity::Problem,
        title:
            "The configuration has changed since the router started: the change has no effect yet"
                .to_owned(),
        evidence: "The file of the routerConfiguration holds something else than at the start."
            .to_owned(),
        advice: format!("{RESTART} The prefix cache is empty then."),
    })
}

fn not_enabled(facts: &Facts) -> Option<Finding> {
    let enabled: Vec<_> = facts
        .router
        .scores
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    if enabled.contains(&"prefix-cache") {
        return None;
    }
    Some(Finding {
        check: "not-enabled",
        severity: Severity::Problem,
        title: "prefix-cache is not enabled: prompts have no influence on the choice of a pod"
            .to_owned(),
        evidence: match enabled.is_empty() {
            true => "No Score plugin is enabled.".to_owned(),
            false => format!("Enabled Score plugins: {}.", enabled.join(", ")),
        },
        advice: format!(
            "Add {{name: prefix-cache, weight: 1}} to scheduler.plugins.Score.enabled; random must not be beside it. {RESTART}"
        ),
    })
}
