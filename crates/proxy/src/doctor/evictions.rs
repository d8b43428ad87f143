//! Lists that are too short for what is sent.

use super::facts::share;
use super::{Configuration, ENOUGH, Facts, Finding, PodEntries, Severity};

const EVICTIONS: &str = "kthena_router_prefix_cache_evictions_total";
/// From it on the lists hold what matters, whatever else they drop.
const FINE: f64 = 0.5;
/// Memory of an entry, in bytes: what a prompt costs that shares nothing (`prefix-index`, example `memory`).
const ENTRY_BYTES: u64 = 79;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let prefix = &facts.prefix;
    let Some(config) = &prefix.configuration else {
        return Vec::new();
    };
    let growth = facts.replicas.first().map_or(0.0, |r| r.growth(EVICTIONS));
    let window = prefix.ratio.five;
    let ratio = match window.ratio {
        Some(ratio) if window.requests >= ENOUGH as u64 && ratio < FINE => ratio,
        _ => return Vec::new(),
    };
    if growth <= 0.0 || prefix.evictions == 0 {
        return Vec::new();
    }
    let wanted = size(facts, config);
    let pods = prefix.pods.len().max(1) as u64;
    let megabytes = (wanted * pods * ENTRY_BYTES).div_ceil(1_000_000);
    vec![Finding {
        check: "evictions",
        severity: Severity::Warning,
        title: "Entries are evicted before they are used again".to_owned(),
        evidence: format!(
            "{} evictions since the start{}, while the match ratio of five minutes is {ratio:.2}. A pod's list holds {} \
             entries.",
            prefix.evictions,
            match facts.replicas.first().and_then(|r| r.before.as_ref()) {
                Some(_) => format!(", {growth:.0} of them between two readings"),
                None => String::new(),
            },
            config.max_hash_cache_size,
        ),
        advice: format!(
            "Set maxHashCacheSize: {wanted} (from {}) and restart the router: it would hold everything that was new in the \
             last 15 minutes. It takes {megabytes} MB at most with {pods} pods. More than the engines' KV caches hold is of no \
             use.",
            config.max_hash_cache_size
        ),
    }]
}

/// Entries that the fullest pod would have needed to drop nothing: since the start, or of the last 15 minutes, whichever
/// is less. An upper bound, since an entry that was dropped and came again is counted twice.
fn size(facts: &Facts, config: &Configuration) -> u64 {
    let prefix = &facts.prefix;
    let window = prefix.ratio.fifteen;
    let new = window.hashed_blocks.saturating_sub(window.matched_blocks);
    let of_pod = |pod: &PodEntries| {
        let since_start = pod.entries.saturating_add(pod.evictions);
        since_start.min(part(new, share(pod.evictions, prefix.evictions)))
    };
    let needed = prefix.pods.iter().map(of_pod).max().unwrap_or(0);
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
