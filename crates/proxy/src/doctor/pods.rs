//! Pods: are there any, and is their load known.

use super::{Facts, Finding, Severity};

/// A router that has just started has not read every pod yet, in seconds.
const FIRST_READINGS: f64 = 10.0;
/// Names that are listed.
const NAMES: usize = 5;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    if facts.pods.is_empty() {
        return vec![Finding {
            check: "no-pods",
            severity: Severity::Problem,
            title: "There is no pod".to_owned(),
            evidence: "/debug/config_dump/pods is empty.".to_owned(),
            advice: "Check the ModelServers' workloadSelector or endpoints, and the router's log for manifests that were \
                     refused."
                .to_owned(),
        }];
    }
    unknown(facts).into_iter().collect()
}

fn unknown(facts: &Facts) -> Option<Finding> {
    let starting = facts
        .router
        .uptime_seconds
        .is_some_and(|s| s < FIRST_READINGS);
    let names: Vec<_> = facts
        .pods
        .iter()
        .filter(|pod| !(pod.metrics_known || starting && pod.metrics_age_ms.is_none()))
        .map(|pod| format!("{}/{}", pod.namespace, pod.name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first: Vec<_> = names.iter().take(NAMES).map(String::as_str).collect();
    Some(Finding {
        check: "pods-unknown",
        severity: Severity::Problem,
        title: format!("The load of {} of {} pods is unknown", names.len(), facts.pods.len()),
        evidence: format!("Their metrics cannot be read: {}{more}.", first.join(", ")),
        advice: "Until they can be read, these pods score in the middle and are never filtered. The router's log says why \
                 (`cannot read metrics`): check the port, inferenceEngine of the ModelServer, and that the engine serves \
                 /metrics."
            .to_owned(),
    })
}
