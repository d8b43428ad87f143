//! `/debug/prompts`: how far the last sampled prompts of a model are the same. Lengths only, no text.

use crate::app::App;
use crate::insight::{HEAD_BYTES, Resumes, Shared};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn answer(app: &Arc<App>) -> Value {
    let app = Arc::clone(app);
    // Some milliseconds of comparing, if there are many models: not on a thread that requests wait for.
    let shared = tokio::task::spawn_blocking(move || app.insight.prompts.shared()).await;
    let models: Vec<_> = shared.iter().flatten().map(model).collect();
    json!({ "models": models })
}

fn model(shared: &Shared) -> Value {
    json!({
        "model": shared.model.as_str(),
        "samples": shared.samples,
        "promptBytes": shared.prompt.json(),
        "pairBytes": shared.pair.json(),
        "bestBytes": shared.best.json(),
        "resumes": shared.resumes.map(resumes),
        "exactBelow": HEAD_BYTES,
    })
}

fn resumes(found: Resumes) -> Value {
    json!({"samples": found.samples, "from": found.from, "after": found.after})
}
