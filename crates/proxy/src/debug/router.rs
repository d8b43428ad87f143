//! `/debug/router`: what runs, with which plugins, what was warned of at the start, and whether the configuration has changed
//! since.

use crate::app::App;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn answer(app: &Arc<App>) -> Value {
    let file = app.configuration.clone();
    // A file system may hang.
    let changed = tokio::task::spawn_blocking(move || file.map(|file| file.is_changed()));
    let scores = app.scheduler.scores();
    let scores: Vec<_> = scores
        .map(|(name, weight)| json!({"name": name, "weight": weight}))
        .collect();
    let filters: Vec<_> = app.scheduler.filters().collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptimeSeconds": std::time::Duration::from_millis(app.uptime_ms()).as_secs_f64(),
        "filters": filters,
        "scores": scores,
        "warnings": app.warnings,
        "configurationChanged": changed.await.ok().flatten(),
    })
}
