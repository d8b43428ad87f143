//! Filter, score, pick: from a request and a server's pods to the pods to try, best first.
//!
//! A [`Scheduler`] takes one [`Row`] per pod, a picture of its load that all plugins of the request share. The Filter
//! plugins drop rows in the configured order, the Score plugins give each remaining row 0..=100, scores are multiplied
//! by their plugin's weight and summed, and the rows with the greatest totals become the [`Plan`]. Nothing is recorded
//! by planning, so a dry run is the same call whose plan is thrown away; what succeeded is reported with
//! [`Scheduler::served`].
//!
//! A new plugin is one file in `plugins/` and one row in [`PLUGINS`].

mod config;
mod observer;
mod pairs;
mod plan;
mod plugin;
mod plugins;
mod rank;
mod row;
mod scheduler;
mod score;
mod turns;

pub use config::{ConfigError, PluginArgs, SchedulerConfig, Warning, WarningKind, Weighted};
pub use observer::{Observer, Unobserved};
pub use pairs::{Pair, PairPlan};
pub use plan::{MAX_ATTEMPTS, Plan, ScheduleError};
pub use plugin::{Arg, FilterPlugin, Matches, Memo, Plugin, ScorePlugin, Verdict};
pub use plugins::{LeastLatencyArgs, LeastRequestArgs, PLUGINS, PrefixCacheArgs};
pub use prefix_index::{Hashes, Recorded};
pub use row::{Row, Rows};
pub use scheduler::{PrefixCacheInside, Scheduler};
pub use score::{Score, Total};
pub use turns::Turns;

use crate::prompt::Prompt;

/// What is asked of the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model as the client spells it.
    pub model: &'a str,
    /// The rendered prompt.
    pub prompt: &'a Prompt<'a>,
    /// Random bits that decide what is arbitrary: among equal pods, and the scores of the random plugin. The same
    /// bits give the same plan.
    pub draw: u64,
}
