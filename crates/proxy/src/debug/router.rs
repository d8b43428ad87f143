//! `/debug/router`: what runs, with which plugins, and what was warned of at the start.

use crate::app::App;
use serde_json::{Value, json};

pub(super) fn answer(app: &App) -> Value {
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
    })
}
