//! `/debug/prefix-cache`: what the prefix index holds, and how much of the prompts was found in it.

use crate::app::App;
use crate::insight::{HEAD_BYTES, Looked, Tally};
use prefix_index::{Chain, Occupancy, PodId, PrefixIndex, SharedPrefix};
use routing::schedule::{PrefixCacheArgs, PrefixCacheInside};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Shared prefixes that are shown.
const PREFIXES: usize = 20;
/// Characters of a prefix that are shown, where texts are.
const CHARACTERS: usize = 80;
/// The windows of the hit ratio, with their names.
const WINDOWS: [(&str, Duration); 3] = [
    ("1m", Duration::from_secs(60)),
    ("5m", Duration::from_secs(5 * 60)),
    ("15m", Duration::from_secs(15 * 60)),
];

pub(super) async fn answer(app: &Arc<App>) -> Value {
    let inside = app.scheduler.prefix_cache();
    let theirs = Arc::clone(app);
    // A walk over the whole index: not on a thread that requests wait for.
    let prefixes = tokio::task::spawn_blocking(move || prefixes(&theirs)).await;
    json!({
        "configuration": inside.map(configuration),
        "pods": inside.map(|inside| pods(app, inside.index)).unwrap_or_default(),
        "entries": inside.map_or(0, |inside| inside.index.len()),
        "evictions": inside.map_or(0, |inside| inside.index.evictions()),
        "ratio": ratio(app),
        "workingSet": app.insight.working_set.looked().map(working_set),
        "prefixes": prefixes.unwrap_or_default(),
        "models": app.insight.agreements.json(&app.fleet(), app.uptime()),
    })
}

fn configuration(inside: PrefixCacheInside<'_>) -> Value {
    let PrefixCacheArgs {
        block_bytes,
        max_blocks,
        capacity,
        top_k,
        ..
    } = *inside.args;
    json!({
        "blockSizeToHash": block_bytes,
        "maxBlocksToMatch": max_blocks,
        "topKMatches": top_k,
        "maxHashCacheSize": capacity,
        "weight": inside.weight,
    })
}

/// How full each pod's list is.
fn pods(app: &App, index: &PrefixIndex) -> Vec<Value> {
    let lists = index.occupancy().into_iter();
    let lists: HashMap<PodId, Occupancy> = lists.map(|list| (list.pod, list)).collect();
    let fleet = app.fleet();
    let pods = fleet.pods();
    let lists = pods.iter().filter_map(|(id, pod)| {
        let list = lists.get(id)?;
        Some(json!({
            "pod": pod.name.as_str(),
            "entries": list.entries,
            "capacity": index.capacity(),
            "evictions": list.evictions,
        }))
    });
    lists.collect()
}

/// How much of the prompts was found, of each window.
fn ratio(app: &App) -> Map<String, Value> {
    let now = app.uptime();
    let windows = WINDOWS.iter().map(|(name, window)| {
        let tally = app.insight.windows.over(*window, now);
        let Tally {
            requests,
            matched,
            hashed,
            evictions,
        } = tally;
        let value = json!({
            "requests": requests,
            "matchedBlocks": matched,
            "hashedBlocks": hashed,
            "ratio": tally.ratio(),
            "evictions": evictions,
        });
        ((*name).to_owned(), value)
    });
    windows.collect()
}

fn working_set(Looked { blocks, again }: Looked) -> Value {
    json!({"blocks": blocks, "again": again})
}

/// The beginnings that most pods hold.
fn prefixes(app: &App) -> Vec<Value> {
    let Some(inside) = app.scheduler.prefix_cache() else {
        return Vec::new();
    };
    let head_blocks = HEAD_BYTES / inside.args.block_bytes;
    let texts = match app.settings.shows_prompts {
        true => texts(app, inside.args),
        false => HashMap::new(),
    };
    let prefixes = inside
        .index
        .shared_prefixes(PREFIXES, head_blocks)
        .into_iter();
    let prefix = |prefix: SharedPrefix| {
        json!({
            "hash": format!("{:016x}", prefix.hash),
            "blocks": prefix.blocks,
            "pods": prefix.pods,
            "text": texts.get(&prefix.head),
        })
    };
    prefixes.map(prefix).collect()
}

/// The beginnings of the sampled prompts, by the hash of each of their first blocks.
fn texts(app: &App, args: &PrefixCacheArgs) -> HashMap<u64, String> {
    let mut texts = HashMap::new();
    for (model, samples) in app.insight.prompts.samples() {
        for sample in samples {
            let mut chain = Chain::new(model.as_str(), args.block_bytes, args.max_blocks);
            let _ = chain.push(&sample.head);
            for (number, hash) in chain.finish().iter().enumerate() {
                let end = (number + 1).saturating_mul(args.block_bytes);
                let text = sample.head.get(..end).unwrap_or(&sample.head);
                let text = String::from_utf8_lossy(text)
                    .chars()
                    .take(CHARACTERS)
                    .collect();
                texts.insert(*hash, text);
            }
        }
    }
    texts
}
