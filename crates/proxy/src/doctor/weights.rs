//! A pod that has the prefix, and requests that go elsewhere.

use super::facts::share;
use super::{Candidate, Decision, ENOUGH, Facts, Finding, Severity};
use std::collections::BTreeMap;

const PREFIX_CACHE: &str = "prefix-cache";
/// A pod with less of the prompt is not much of a loss.
const WORTH: f64 = 0.5;
/// Share of the decisions from which on it is no exception.
const OFTEN: f64 = 0.25;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let models = facts.models().into_iter();
    models
        .flat_map(|model| {
            let scored = facts.scored(model);
            [outvoted(facts, model, &scored), filtered(model, &scored)]
        })
        .flatten()
        .collect()
}

/// A decision in which a pod lost that had more of the prompt than the one chosen.
struct Lost<'a> {
    /// The plugin that gave the chosen pod the greatest lead.
    plugin: &'a str,
    /// The weight of prefix-cache that would have sufficed.
    weight: f64,
}

fn outvoted(facts: &Facts, model: &str, scored: &[&Decision]) -> Option<Finding> {
    let lost: Vec<_> = scored.iter().filter_map(|d| lost(facts, d)).collect();
    if scored.len() < ENOUGH || share(lost.len() as u64, scored.len() as u64) < OFTEN {
        return None;
    }
    let mut blame: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &lost {
        *blame.entry(one.plugin).or_default() += 1;
    }
    let (plugin, times) = blame.into_iter().max_by_key(|(_, n)| *n)?;
    let mut weights: Vec<_> = lost.iter().map(|l| l.weight).collect();
    weights.sort_by(f64::total_cmp);
    let wanted = weights.get(weights.len() / 2)?;
    let now = facts.router.weight(PREFIX_CACHE);
    Some(Finding {
        check: "outvoted",
        severity: Severity::Warning,
        title: format!(
            "{plugin} outvotes prefix-cache for {model}: requests do not go to the pod that has their prefix"
        ),
        evidence: format!(
            "In {} of the latest {} decisions a pod lost that was sent at least half of the prompt before; in {times} of them \
             {plugin} (weight {}) made the difference against prefix-cache (weight {now}).",
            lost.len(),
            scored.len(),
            facts.router.weight(plugin),
        ),
        advice: format!(
            "Raise the weight of prefix-cache from {now} to {wanted} (it would have decided half of these), or lower that of \
             {plugin}, and restart the router. If the pods that have the prefix are overloaded, this is as it should be: add \
             pods. `kthena-router explain` shows the scores."
        ),
    })
}

fn lost<'a>(facts: &Facts, decision: &'a Decision) -> Option<Lost<'a>> {
    // After a failure the pod is what was left, and a pair is chosen in two passes.
    if decision.attempt.unwrap_or(1) > 1 || decision.prefill_pod.is_some() {
        return None;
    }
    let chosen = decision.candidates.iter().find(|c| c.pod == decision.pod)?;
    // The nearest to winning of those that hold most: the best ones stand first.
    let best = decision
        .candidates
        .iter()
        .rev()
        .max_by_key(|c| c.matched_blocks)?;
    let ahead = best.matched_blocks.saturating_sub(chosen.matched_blocks);
    if share(ahead, decision.hashed_blocks) < WORTH {
        return None;
    }
    let lead = |plugin: &str| {
        let score = |c: &Candidate| c.scores.get(plugin).copied().unwrap_or(0.0);
        facts.router.weight(plugin) * (score(chosen) - score(best))
    };
    let others = chosen.scores.keys().filter(|name| *name != PREFIX_CACHE);
    let leads: Vec<_> = others.map(|name| (name.as_str(), lead(name))).collect();
    let (plugin, most) = leads.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let behind = -lead(PREFIX_CACHE) / facts.router.weight(PREFIX_CACHE).max(f64::MIN_POSITIVE);
    // Without a place among topKMatches its score is 0 like that of the others: then no weight helps.
    (most > 0.0 && behind > 0.0).then(|| Lost {
        plugin,
        weight: (leads.iter().map(|(_, lead)| lead).sum::<f64>() / behind).floor() + 1.0,
    })
}

/// Filter whose pods are dropped because they are overloaded.
const OVERLOAD: &str = "least-request";

fn filtered(model: &str, scored: &[&Decision]) -> Option<Finding> {
    let dropped = |d: &&&Decision| d.filtered.get(OVERLOAD).is_some_and(|&pods| pods > 0);
    let count = scored.iter().filter(dropped).count();
    (count >= ENOUGH && share(count as u64, scored.len() as u64) >= OFTEN).then(|| Finding {
        check: "filtered",
        severity: Severity::Warning,
        title: format!("Pods are filtered out before they are scored, for {model}"),
        evidence: format!(
            "In {count} of the latest {} decisions the filter {OVERLOAD} dropped a pod: as many requests waited for it as \
             maxWaitingRequests.",
            scored.len(),
        ),
        advice: "These pods are overloaded, whatever prefix they have. Add pods, or raise maxWaitingRequests. `kthena-router \
                 explain` names the filter of each pod."
            .to_owned(),
    })
}
