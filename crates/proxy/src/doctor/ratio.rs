//! A match ratio that is 0 or low.

use super::facts::share;
use super::{Configuration, Decision, ENOUGH, Facts, Finding, Prompts, Severity};

/// Below it a ratio is low.
const LOW: f64 = 0.3;
/// Below it a cache that is being filled has not come far.
const FILLING: f64 = 0.5;
/// How long a cache is new, in seconds.
const NEW: f64 = 300.0;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(config) = &facts.prefix.configuration else {
        return Vec::new();
    };
    let mut found: Vec<_> = facts
        .models()
        .into_iter()
        .filter_map(|model| of_model(facts, config, model))
        .collect();
    found.extend(restarted(facts));
    found.extend(pinned(facts));
    found
}

fn of_model(facts: &Facts, config: &Configuration, model: &str) -> Option<Finding> {
    let scored = facts.scored(model);
    if scored.len() < ENOUGH {
        return None;
    }
    let matched = scored.iter().filter(|d| d.best_match() > 0).count();
    let prompts = facts.prompts_of(model);
    if matched == 0
        && let Some(failing) = failing(model, &scored)
    {
        return Some(failing);
    }
    let (prompts, mean) = (prompts?, mean(&scored));
    if mean >= LOW {
        return None;
    }
    if let Some(found) = diverging(config, model, mean, prompts) {
        return Some(found);
    }
    match matched {
        0 => different(config, model, scored.len(), prompts)
            .or_else(|| not_recorded(facts, model, scored.len(), prompts)),
        _ => short(model, mean, prompts),
    }
}

#[allow(clippy::cast_precision_loss, reason = "at most some hundred decisions")]
pub(super) fn mean(scored: &[&Decision]) -> f64 {
    scored.iter().map(|d| d.ratio()).sum::<f64>() / scored.len().max(1) as f64
}

fn failing(model: &str, scored: &[&Decision]) -> Option<Finding> {
    let failed = |d: &&&Decision| d.status.is_some_and(|s| s >= 400);
    let count = scored.iter().filter(failed).count();
    (count * 2 > scored.len()).then(|| Finding {
        check: "always-0-failing",
        severity: Severity::Problem,
        title: format!("The match ratio of {model} is 0 because its requests fail"),
        evidence: format!(
            "{count} of the latest {} requests were answered with an error. Only a request that succeeds is recorded.",
            scored.len()
        ),
        advice: "Look at `error` and `upstream_status_code` in the access log, and at the engines' own logs.".to_owned(),
    })
}

/// What changes with each request stands in the midst of what is shared.
fn diverging(
    config: &Configuration,
    model: &str,
    ratio: f64,
    prompts: &Prompts,
) -> Option<Finding> {
    let resumes = prompts
        .resumes
        .filter(|r| r.samples * 2 > prompts.samples)?;
    let (at, block) = (resumes.from, config.block_size_to_hash);
    let (check, severity, low) = match ratio > 0.0 {
        false => ("always-0-diverging", Severity::Problem, "0"),
        true => ("low-diverging", Severity::Warning, "low"),
    };
    Some(Finding {
        check,
        severity,
        title: format!("The match ratio of {model} is {low}: its prompts differ from byte {at} on"),
        evidence: format!(
            "Mean ratio of the latest requests {ratio:.2}. Of {} sampled prompts ({} bytes at the median), {} differ from the one \
             they share most with at byte {at} (median) and are the same again within {} bytes; a block has {block} bytes.",
            prompts.samples,
            prompts.prompt_bytes.median,
            resumes.samples,
            resumes.after.max(1),
        ),
        advice: format!(
            "See what stands at byte {at} of the prompt (`kthena-router explain` shows the text as it is hashed): a timestamp, \
             an id or a user's name there makes all that follows new. Put what is shared, such as the system prompt, first, and \
             what changes with each request after it."
        ),
    })
}

fn different(
    config: &Configuration,
    model: &str,
    requests: usize,
    prompts: &Prompts,
) -> Option<Finding> {
    let (at, block) = (prompts.best_bytes.median, config.block_size_to_hash);
    (at < block).then(|| Finding {
        check: "always-0-different",
        severity: Severity::Note,
        title: format!("The match ratio of {model} is 0: its prompts have no block in common"),
        evidence: format!(
            "None of the latest {requests} requests matched a block. Of {} sampled prompts ({} bytes at the median), each is \
             equal to the one it shares most with up to byte {at} (median; {} to {}); a block has {block} bytes.",
            prompts.samples, prompts.prompt_bytes.median, prompts.best_bytes.min, prompts.best_bytes.max,
        ),
        advice: format!(
            "As expected where prompts have nothing in common, or are shorter than a block. If they should share something, such \
             as a system prompt, it must come first: see what stands at byte {at} (`kthena-router explain` shows the text as it \
             is hashed)."
        ),
    })
}

fn not_recorded(facts: &Facts, model: &str, requests: usize, prompts: &Prompts) -> Option<Finding> {
    // Then the lists are too short, and that check says so.
    (facts.prefix.evictions == 0).then(|| Finding {
        check: "always-0-first-seen",
        severity: Severity::Note,
        title: format!("Nothing of {model} has matched yet, although its prompts share a beginning"),
        evidence: format!(
            "None of the latest {requests} requests matched a block; sampled prompts share {} bytes with another one.",
            prompts.best_bytes.median
        ),
        advice: "A prompt is recorded when its answer has ended. If this stays, look whether answers end (a client that leaves \
                 records nothing) and whether another replica serves the other half."
            .to_owned(),
    })
}

fn short(model: &str, ratio: f64, prompts: &Prompts) -> Option<Finding> {
    let (shared, whole) = (prompts.best_bytes.median, prompts.prompt_bytes.median);
    (share(shared, whole) < FILLING).then(|| Finding {
        check: "low-short-shared-part",
        severity: Severity::Note,
        title: format!("The match ratio of {model} is low because its prompts share little"),
        evidence: format!(
            "Mean ratio of the latest requests {ratio:.2}; sampled prompts share {shared} of {whole} bytes (medians)."
        ),
        advice: "As expected: the ratio shows how much of the prompt the engine can reuse.".to_owned(),
    })
}

fn restarted(facts: &Facts) -> Option<Finding> {
    let uptime = facts.router.uptime_seconds.filter(|&s| s < NEW)?;
    let ratio = facts.prefix.ratio.fifteen;
    let low = ratio.requests >= ENOUGH as u64 && ratio.matched_blocks > 0 && ratio.ratio? < FILLING;
    low.then(|| Finding {
        check: "restarted",
        severity: Severity::Note,
        title: "The cache is being filled after a start".to_owned(),
        evidence: format!("The router started {uptime:.0} s ago, with an empty cache."),
        advice: "As expected: the ratio recovers as new requests are served.".to_owned(),
    })
}

fn pinned(facts: &Facts) -> Option<Finding> {
    let pinned = facts.decisions.iter().filter(|d| d.pinned).count();
    (pinned >= ENOUGH && pinned * 2 > facts.decisions.len()).then(|| Finding {
        check: "pinned",
        severity: Severity::Note,
        title: "Most requests are pinned by session sticky and are not scored".to_owned(),
        evidence: format!("{pinned} of the latest {} decisions.", facts.decisions.len()),
        advice: "As expected: the match ratio covers the others only. `recordSticky: true` of prefix-cache records pinned \
                 requests too, so that a session whose binding ends finds its pod again."
            .to_owned(),
    })
}
