//! What a search found, for a person or a program.

use crate::table::Table;
use serde_json::{Value, json};
use sim::replay::{Objective, Trial, Tuned, Tuning};
use std::fmt::Write as _;

/// Gains below this share are within what another part of the trace would give.
const NOISE: f64 = 0.02;

/// Whether the settings that were found are worth a change.
pub(super) fn pays(tuned: &Tuned) -> bool {
    !tuned.changes.is_empty() && tuned.gain() >= NOISE && tuned.is_better_with_every_draw()
}

/// The text. `yaml` is the configuration that was found.
pub(super) fn text(tuned: &Tuned, tuning: &Tuning, yaml: &str) -> String {
    let goal = match tuning.objective {
        Objective::TtftMean => "TTFT mean",
        Objective::TtftP90 => "TTFT p90",
        Objective::Uncached => "uncached share",
    };
    let cost = |cost: f64| match tuning.objective {
        Objective::Uncached => format!("{:.1} %", cost * 100.0),
        Objective::TtftMean | Objective::TtftP90 => format!("{:.0} ms", cost * 1000.0),
    };
    let mut text = format!(
        "{} replays. Measured on the last {} requests, which took no part in the search, behind all others; the mean of\n\
         three draws and how far from it one of them is at most:\n\n",
        tuned.replays, tuned.held_out,
    );
    let mut table = Table::new(["", goal, "±", "cached tokens", "failed", "hotspot"]);
    let row = |name: &str, trial: &Trial| {
        vec![
            name.to_owned(),
            cost(trial.cost()),
            cost(trial.spread()),
            format!("{:.1} %", trial.mean(|run| run.summary.cached_percent())),
            format!("{:.0}", trial.mean(|run| run.summary.failed as f64)),
            format!("{:.2}", trial.mean(|run| run.summary.hotspot())),
        ]
    };
    table.row(row("start", &tuned.start));
    table.row(row("best", &tuned.best));
    // Writing to a string does not fail.
    let _ = writeln!(text, "{table}");
    if tuned.changes.is_empty() {
        text.push_str("No other settings were better: keep those of the start.\n");
        return text;
    }
    let gain = tuned.gain() * 100.0;
    let _ = match pays(tuned) {
        true => writeln!(
            text,
            "{goal} is {gain:.1} % less. Why, by taking back one change at a time:\n"
        ),
        false => writeln!(
            text,
            "The best settings of the search are worth {gain:.1} % on these requests{}. That is too little to be sure of:\n\
             keep those of the start.\n",
            match tuned.is_better_with_every_draw() {
                true => "",
                false => ", and less than nothing with some draws",
            }
        ),
    };
    let mut table = Table::new([
        "change",
        "from",
        "to",
        &format!("{goal} without it"),
        "±",
        "worth",
    ]);
    for change in &tuned.changes {
        let worth = change.without.cost() / tuned.best.cost().max(f64::MIN_POSITIVE) - 1.0;
        table.row(vec![
            change.difference.name.clone(),
            change.difference.from.to_string(),
            change.difference.to.to_string(),
            cost(change.without.cost()),
            cost(change.without.spread()),
            format!("{:+.1} %", worth * 100.0),
        ]);
    }
    let _ = writeln!(text, "{table}");
    if pays(tuned) {
        let _ = write!(text, "routerConfiguration:\n\n{yaml}");
    }
    text
}

/// The same for a program. Times are seconds, shares 0..=1.
pub(super) fn json(tuned: &Tuned, scheduler: &Value) -> Value {
    let trial = |trial: &Trial| {
        let runs = trial.runs.iter();
        let runs: Vec<_> = runs
            .map(|run| {
                let mut summary = run.summary.json();
                summary["cost"] = json!(run.cost);
                summary
            })
            .collect();
        json!({"cost": trial.cost(), "spread": trial.spread(), "runs": runs})
    };
    let changes = tuned.changes.iter().map(|change| {
        json!({
            "name": change.difference.name,
            "from": change.difference.from,
            "to": change.difference.to,
            "without": trial(&change.without),
        })
    });
    json!({
        "replays": tuned.replays,
        "held_out_requests": tuned.held_out,
        "start": trial(&tuned.start),
        "best": trial(&tuned.best),
        "gain": tuned.gain(),
        "pays": pays(tuned),
        "changes": changes.collect::<Vec<_>>(),
        "scheduler": scheduler,
    })
}
