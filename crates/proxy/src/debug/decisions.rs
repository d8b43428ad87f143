//! `/debug/decisions`: where the last sampled requests went, and why.

use crate::app::App;
use serde_json::{Value, json};

pub(super) fn answer(app: &App) -> Value {
    json!({ "decisions": app.insight.decisions.newest_first() })
}
