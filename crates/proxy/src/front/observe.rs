//! What the router sees of a scheduling decision: plugin times, the match ratio, and with `-v 4` every score.

use crate::metrics::{Metrics, ModelLabel, PluginLabels, Text};
use routing::schedule::{Matches, Observer, Row, Score, Total};
use std::fmt::Write as _;
use std::time::Instant;

/// Watches the scheduling of one request.
pub(super) struct Watcher<'a> {
    metrics: &'a Metrics,
    model: &'a Text,
    started: Option<Instant>,
    /// The lines of `-v 4`, collected so that they are written without another request's between them.
    lines: Option<String>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(metrics: &'a Metrics, model: &'a Text) -> Self {
        let lines = tracing::enabled!(tracing::Level::TRACE).then(String::new);
        Self {
            metrics,
            model,
            started: None,
            lines,
        }
    }

    /// Writes what was collected.
    pub(super) fn finish(self) {
        if let Some(lines) = self.lines.filter(|lines| !lines.is_empty()) {
            tracing::trace!("{lines}");
        }
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

    fn filtered(&mut self, plugin: &'static str, _: &[Row<'_>], _: &[bool]) {
        self.took(plugin, "filter");
    }

    fn scored(&mut self, plugin: &'static str, rows: &[Row<'_>], scores: &[Score]) {
        self.took(plugin, "score");
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

    fn matched(&mut self, _: &[Row<'_>], matches: &Matches) {
        let ratio = f64::from(matches.best) / matches.hashes.len() as f64;
        let labels = ModelLabel {
            model: self.model.clone(),
        };
        self.metrics
            .match_ratio
            .get_or_create(&labels)
            .observe(ratio);
    }

    fn totals(&mut self, rows: &[Row<'_>], totals: &[Total]) {
        if let Some(lines) = &mut self.lines {
            let _ = writeln!(lines, "Final Pod Scores:");
            for (row, total) in rows.iter().zip(totals) {
                let _ = writeln!(lines, "  Pod: {}, Final Score: {total}", row.pod.name);
            }
        }
    }
}
