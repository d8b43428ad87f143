//! A match ratio near 1 on several pods: what is hashed ends before the prompts differ. One model may serve several
//! applications, each with a shared part of its own, so each prompt is compared with the one that it shares most with.

use super::facts::share;
use super::ratio::mean;
use super::{Configuration, Decision, ENOUGH, Facts, Finding, Severity};
use std::collections::BTreeMap;

/// From it on all requests look the same.
const ALIKE: f64 = 0.9;
/// A pod with a greater share of the requests is preferred, by whatever.
const PREFERRED: f64 = 0.8;
/// Share of the decisions in which several pods held all that was hashed, from which on it is no exception.
const OFTEN: f64 = 0.3;
/// `maxBlocksToMatch` is advised in steps of so many blocks.
const STEP: u64 = 32;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(config) = &facts.prefix.configuration else {
        return Vec::new();
    };
    let models = facts.models().into_iter();
    models
        .filter_map(|model| of_model(facts, config, model))
        .collect()
}

fn of_model(facts: &Facts, config: &Configuration, model: &str) -> Option<Finding> {
    let scored = facts.scored(model);
    let prompts = facts.prompts_of(model)?;
    let shared = prompts.best_bytes.median;
    // Prompts that are equal to their ends have nothing beyond the shared part to tell them apart by.
    let hidden = shared >= config.coverage() && shared < prompts.prompt_bytes.median;
    let ratio = mean(&scored);
    if scored.len() < ENOUGH || ratio < ALIKE || !hidden {
        return None;
    }
    let (pods, busiest) = pods(&scored);
    let alike = scored.iter().filter(|d| holders(d) > 1).count();
    if pods < 2 || busiest > PREFERRED || share(alike as u64, scored.len() as u64) < OFTEN {
        return None;
    }
    let wanted = blocks(shared, config.block_size_to_hash);
    Some(Finding {
        check: "coverage",
        severity: Severity::Warning,
        title: format!(
            "All prompts of {model} look the same: they differ beyond the bytes that are hashed"
        ),
        evidence: format!(
            "Mean match ratio {ratio:.2}, and yet the latest {} requests went to {pods} pods (at most {:.0} % to one); in {alike} \
             decisions several pods held all that was hashed. A prompt shares {shared} bytes with the one it shares most with \
             (median of {} samples); {} blocks of {} bytes cover {}.",
            scored.len(),
            busiest * 100.0,
            prompts.samples,
            config.max_blocks_to_match,
            config.block_size_to_hash,
            config.coverage(),
        ),
        advice: format!(
            "Set maxBlocksToMatch: {wanted} (from {}) to reach past the shared part, and restart the router. Each block costs \
             an entry: look at maxHashCacheSize too.",
            config.max_blocks_to_match
        ),
    })
}

/// Pods that hold all that was hashed of a prompt.
fn holders(decision: &Decision) -> usize {
    let candidates = decision.candidates.iter();
    candidates
        .filter(|c| c.matched_blocks >= decision.hashed_blocks)
        .count()
}

/// Blocks that reach a quarter, and two blocks at least, past what is shared.
fn blocks(shared: u64, size: u64) -> u64 {
    let shared = shared.div_ceil(size.max(1));
    (shared + (shared / 4).max(2)).next_multiple_of(STEP)
}

/// Number of pods, and the greatest share of one.
#[allow(clippy::cast_precision_loss, reason = "at most some hundred decisions")]
fn pods(scored: &[&Decision]) -> (usize, f64) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for decision in scored {
        *counts.entry(&decision.pod).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    (counts.len(), most as f64 / scored.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_reaches_past_the_shared_part() {
        for (shared, size, wanted) in [(8192, 64, 160), (10_000, 64, 224), (64, 64, 32), (0, 0, 32)]
        {
            assert_eq!(blocks(shared, size), wanted);
            assert!(wanted * size >= shared);
        }
    }
}
