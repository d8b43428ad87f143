//! What a search found, for a person.

use crate::table::Table;
use sim::replay::{Objective, Trial, Tuned, Tuning};
use std::fmt::Write as _;

/// Gains below this share are within what another part of the trace would give.
const NOISE: f64 = 0.02;

/// The text.
pub(super) fn text(tuned: &Tuned, tuning: &Tuning) -> String {
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
        "{} replays. Measured on the last {:.0} % of the trace, which took no part in the search, as the mean of three \
         draws:\n\n",
        tuned.replays,
        tuning.held_out * 100.0,
    );
    let mut table = Table::new(["", goal, "cached tokens", "failed", "hotspot"]);
    let row = |name: &str, trial: &Trial| {
        vec![
            name.to_owned(),
            cost(trial.cost),
            format!("{:.1} %", trial.summary.cached_percent()),
            trial.summary.failed.to_string(),
            format!("{:.2}", trial.summary.hotspot()),
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
    let gain = tuned.gain();
    if gain < NOISE {
        let _ = writeln!(
            text,
            "The best settings of the search are worth {:.1} % on the held-out part. That is too little to be sure of: keep those \
             of the start.\n",
            gain * 100.0
        );
    } else {
        let _ = writeln!(
            text,
            "{goal} is {:.1} % less. Why, by taking back one change at a time:\n",
            gain * 100.0
        );
    }
    let mut table = Table::new([
        "change",
        "from",
        "to",
        &format!("{goal} without it"),
        "worth",
    ]);
    for change in &tuned.changes {
        let worth = change.without / tuned.best.cost.max(f64::MIN_POSITIVE) - 1.0;
        table.row(vec![
            change.difference.name.clone(),
            change.difference.from.to_string(),
            change.difference.to.to_string(),
            cost(change.without),
            format!("{:+.1} %", worth * 100.0),
        ]);
    }
    let _ = writeln!(text, "{table}");
    if gain >= NOISE {
        let _ = write!(
            text,
            "routerConfiguration:\n\n{}",
            tuned.best.settings.yaml()
        );
    }
    text
}
