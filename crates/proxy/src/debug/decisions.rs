//! `/debug/decisions`: the last decisions that were carried out, newest first.

use crate::app::App;
use serde_json::{Value, json};
use std::sync::Arc;

/// Decisions that are shown unless another number is asked for.
const SHOWN: usize = 200;

/// The answer; the query may have a `limit`.
pub(super) async fn answer(app: &Arc<App>, query: &str) -> Value {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let limit = pairs.find_map(|(key, value)| (key == "limit").then(|| value.parse().ok())?);
    let decisions = app.insight.decisions.newest_first(limit.unwrap_or(SHOWN));
    // A megabyte, if many are asked for: not on a thread that requests wait for.
    let all = tokio::task::spawn_blocking(move || {
        let all = decisions.iter().map(|decision| decision.json());
        all.collect::<Vec<_>>()
    });
    json!({ "decisions": all.await.unwrap_or_default() })
}
