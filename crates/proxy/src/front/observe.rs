//! What the router sees of a scheduling decision: plugin times, the match ratio, and with `-v 4` every score.

use crate::app::App;
use crate::insight::{Passes, Seen};
use crate::metrics::{Metrics, ModelLabel, PluginLabels, Text};
use crate::record::Record;
use routing::schedule::{Matches, Observer, Row, Score, Total};
use std::fmt::Write as _;
use std::time::Instant;

/// Watches the scheduling of one request.
pub(super) struct Watcher<'a> {
    app: &'a App,
    metrics: &'a Metrics,
    model: &'a Text,
    started: Option<Instant>,
    /// The lines of `-v 4`, collected so that they are written without another request's between them.
    lines: Option<String>,
    seen: Seen,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(app: &'a App, record: &'a Record) -> Self {
        let lines = tracing::enabled!(tracing::Level::TRACE).then(String::new);
        Self {
            app,
            metrics: &app.metrics,
            model: record.model_label(),
            started: None,
            lines,
            seen: Seen {
                passes: record.trail.is_close().then(Passes::default),
                ..Seen::default()
            },
        }
    }

    /// Writes what was collected, and returns what the request's record is to have.
    pub(super) fn finish(self) -> Seen {
        if let Some(lines) = self.lines.filter(|lines| !lines.is_empty()) {
            tracing::trace!("{lines}");
        }
        self.seen
    }

    fn took(&mut self, plugin: &'static str, kind: &'static str) {
        if let Some(started) = self.started.take() {
            let labels = PluginLabels {
                model: self.model.clone(),
                plugin,
                r#type: kind,
            };
            self.metrics
                .plugin_duration
                .get_or_create(&labels)
                .observe(started.elapsed().as_secs_f64());
        }
    }
}

impl Observer for Watcher<'_> {
    fn started(&mut self) {
        self.started = Some(Instant::now());
    }

    fn filtered(&mut self, plugin: &'static str, _: &[Row<'_>], kept: &[bool]) {
        self.took(plugin, "filter");
        if let Some(passes) = &mut self.seen.passes {
            passes.filtered(plugin, kept);
        }
    }

    fn scored(&mut self, plugin: &'static str, rows: &[Row<'_>], scores: &[Score]) {
        self.took(plugin, "score");
        if let Some(passes) = &mut self.seen.passes {
            passes.scored(plugin, rows, scores);
        }
        if let Some(lines) = &mut self.lines {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "ScorePlugin: {plugin}");
            for (row, score) in rows.iter().zip(scores) {
                let _ = writeln!(lines, "Pod: {}, Score: {}", row.pod.name, score.get());
            }
        }
    }

    fn abstained(&mut self, plugin: &'static str) {
        self.took(plugin, "score");
    }

    fn matched(&mut self, rows: &[Row<'_>], matches: &Matches) {
        let hashed = matches.hashes.len();
        self.app.insight.windows.add(matches.best, hashed);
        // The second side of a pair looks up the same blocks.
        if self.seen.predicted.hashed == 0 {
            let held = matches.best;
            self.app.insight.working_set.look(&matches.hashes, held);
        }
        self.seen.predicted.add(rows, &matches.blocks, hashed);
        if let Some(passes) = &mut self.seen.passes {
            passes.matched(rows, &matches.blocks);
        }
        let ratio = f64::from(matches.best) / hashed as f64;
        let labels = ModelLabel {
            model: self.model.clone(),
        };
        self.metrics
            .match_ratio
            .get_or_create(&labels)
            .observe(ratio);
    }

    fn totals(&mut self, rows: &[Row<'_>], totals: &[Total]) {
        if let Some(passes) = &mut self.seen.passes {
            passes.totals(rows, totals);
        }
        if let Some(lines) = &mut self.lines {
            let _ = writeln!(lines, "Final Pod Scores:");
            for (row, total) in rows.iter().zip(totals) {
                let _ = writeln!(lines, "  Pod: {}, Final Score: {total}", row.pod.name);
            }
        }
    }
}
