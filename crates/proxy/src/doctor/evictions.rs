//! Lists that are too short for what is sent.

use super::facts::share;
use super::{Configuration, ENOUGH, Facts, Finding, PodEntries, Severity, Window, WorkingSet};

/// From it on the lists hold what matters, whatever else they drop.
const FINE: f64 = 0.5;
/// Of the blocks that no pod held, the share that was asked for before, below which longer lists would hold them in vain.
const AGAIN: f64 = 0.05;
/// Memory of an entry, in bytes: what a prompt costs that shares nothing (`prefix-index`, example `memory`).
const ENTRY_BYTES: u64 = 79;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let prefix = &facts.prefix;
    let Some(config) = &prefix.configuration else {
        return Vec::new();
    };
    let window = prefix.ratio.five;
    let ratio = match window.ratio {
        Some(ratio) if window.requests >= ENOUGH as u64 && ratio < FINE => ratio,
        _ => return Vec::new(),
    };
    let Some(set) = prefix.working_set.filter(|_| window.evictions > 0) else {
        return Vec::new();
    };
    let finding = match set.again {
        Some(again) if again >= AGAIN => too_short(facts, config, set, again),
        _ => nothing_again(set),
    };
    vec![Finding {
        evidence: seen(config, window, ratio) + &finding.evidence,
        ..finding
    }]
}

fn seen(config: &Configuration, window: Window, ratio: f64) -> String {
    format!(
        "{} evictions in five minutes, in which the match ratio is {ratio:.2}. A pod's list holds {} entries. ",
        window.evictions, config.max_hash_cache_size,
    )
}

fn nothing_again(set: WorkingSet) -> Finding {
    Finding {
        check: "evictions-of-what-is-new",
        severity: Severity::Note,
        title: "Entries are evicted, and would not have been used again".to_owned(),
        evidence: format!(
            "Of the blocks that no pod had, {:.0} % had been asked for in the last minutes.",
            set.again.unwrap_or_default() * 100.0
        ),
        advice: "As expected where prompts have nothing in common. A larger maxHashCacheSize wins nothing.".to_owned(),
    }
}

fn too_short(facts: &Facts, config: &Configuration, set: WorkingSet, again: f64) -> Finding {
    let wanted = size(facts, config, set);
    let pods = facts.prefix.pods.len().max(1) as u64;
    let megabytes = (wanted * pods * ENTRY_BYTES).div_ceil(1_000_000);
    Finding {
        check: "evictions",
        severity: Severity::Warning,
        title: "Entries are evicted before they are used again".to_owned(),
        evidence: format!(
            "{} different blocks were asked for in the last minutes; of those that no pod had, {:.0} % not for the first time.",
            set.blocks,
            again * 100.0
        ),
        advice: format!(
            "Set maxHashCacheSize: {wanted} (from {}) and restart the router: it would hold all that was asked for in the last \
             15 minutes. It takes {megabytes} MB at most with {pods} pods. More than the engines' KV caches hold is of no \
             use.",
            config.max_hash_cache_size
        ),
    }
}

/// Entries that the fullest pod needs to drop nothing that was asked for in the last minutes: its part of them and a
/// quarter.
fn size(facts: &Facts, config: &Configuration, set: WorkingSet) -> u64 {
    let prefix = &facts.prefix;
    let entered = |pod: &PodEntries| pod.entries.saturating_add(pod.evictions);
    let all = prefix.pods.iter().map(entered).sum();
    let shares = prefix.pods.iter().map(|pod| share(entered(pod), all));
    let needed = part(set.blocks, shares.fold(0.0, f64::max) * 1.25);
    // The lists are known to be too short.
    round_up(needed.max(config.max_hash_cache_size.saturating_mul(2)))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an estimate of a count"
)]
fn part(whole: u64, share: f64) -> u64 {
    (whole as f64 * share).ceil() as u64
}

/// To two digits: nobody writes 187,431.
fn round_up(n: u64) -> u64 {
    let step = 10u64.pow(n.max(1).ilog10().saturating_sub(1));
    n.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits() {
        for (n, rounded) in [
            (0, 0),
            (7, 7),
            (90, 90),
            (187_431, 190_000),
            (990_001, 1_000_000),
        ] {
            assert_eq!(round_up(n), rounded);
        }
    }
}
