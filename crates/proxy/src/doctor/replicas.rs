//! Several replicas, each with a cache of its own.

use super::{ENOUGH, Facts, Finding, Replica, Severity};

const SUM: &str = "kthena_router_prefix_cache_match_ratio_sum";
const COUNT: &str = "kthena_router_prefix_cache_match_ratio_count";
/// From it on the replicas do not get in each other's way.
const FINE: f64 = 0.8;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let busy: Vec<_> = facts.replicas.iter().filter_map(ratio).collect();
    let requests: f64 = busy.iter().map(|(_, count, _)| count).sum();
    let matched: f64 = busy.iter().map(|(_, count, ratio)| count * ratio).sum();
    if busy.len() < 2 || matched / requests >= FINE {
        return Vec::new();
    }
    let each: Vec<_> = busy
        .iter()
        .map(|(replica, count, ratio)| {
            format!("{} {ratio:.2} ({count:.0} requests)", replica.address)
        })
        .collect();
    vec![Finding {
        check: "replicas",
        severity: Severity::Warning,
        title: format!("{} replicas share the traffic, and each keeps its own cache", busy.len()),
        evidence: format!("Match ratios: {}.", each.join(", ")),
        advice: "The same prefix reaches several replicas, and each has to learn it: expected. Let the balancer before them \
                 send a client to one replica (sessionAffinity: ClientIP, or a hash of a header), or run fewer replicas."
            .to_owned(),
    }]
}

/// Requests of a replica and their mean ratio, if there are enough of them.
#[allow(clippy::cast_precision_loss, reason = "a small constant")]
fn ratio(replica: &Replica) -> Option<(&Replica, f64, f64)> {
    let enough = |count: f64| count >= ENOUGH as f64;
    let (count, sum) = match replica.growth(COUNT) {
        count if enough(count) => (count, replica.growth(SUM)),
        // Little traffic: since the start.
        _ => (replica.now.sum(COUNT), replica.now.sum(SUM)),
    };
    enough(count).then(|| (replica, count, sum / count))
}
