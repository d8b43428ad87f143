//! How others see a decision come about.

use super::{Matches, Row, Score, Total};

/// Sees each step of a decision. Every method does nothing by default. Observing changes nothing.
pub trait Observer {
    /// A plugin is about to run; [`Self::filtered`], [`Self::scored`] or [`Self::abstained`] follows when it has.
    fn started(&mut self) {}

    /// A Filter plugin ran on these rows; `kept[i]` says whether row i stays.
    fn filtered(&mut self, _plugin: &'static str, _rows: &[Row<'_>], _kept: &[bool]) {}

    /// A Score plugin gave these rows these scores.
    fn scored(&mut self, _plugin: &'static str, _rows: &[Row<'_>], _scores: &[Score]) {}

    /// A Score plugin found nothing to score by.
    fn abstained(&mut self, _plugin: &'static str) {}

    /// A prefix look-up over these rows found this; comes right after the plugin's [`Self::scored`].
    fn matched(&mut self, _rows: &[Row<'_>], _matches: &Matches) {}

    /// The sums over all plugins of score × weight.
    fn totals(&mut self, _rows: &[Row<'_>], _totals: &[Total]) {}
}

/// Nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
