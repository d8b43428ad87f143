//! The scheduler's part of the routerConfiguration: read, validated, ready to be built.

mod args;
mod problem;
mod read;

pub(super) use args::{Args, no_args};
pub use problem::{ConfigError, Warning, WarningKind};

use super::{LeastLatencyArgs, LeastRequestArgs, PLUGINS, Plugin, PrefixCacheArgs};
use serde_json::Value;
use std::num::NonZeroU64;

/// Which plugins run, in which order, with which weights and arguments. Every name in it is known, every weight is
/// greater than 0, and no value in it means "default".
#[derive(Clone, Debug)]
pub struct SchedulerConfig {
    filters: Vec<&'static Plugin>,
    scores: Vec<Weighted>,
    args: PluginArgs,
}

/// An enabled Score plugin.
#[derive(Clone, Copy, Debug)]
pub struct Weighted {
    /// The plugin.
    pub plugin: &'static Plugin,
    /// What a point of its score counts.
    pub weight: NonZeroU64,
}

/// The arguments of all plugins that have some.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PluginArgs {
    /// Of least-request.
    pub least_request: LeastRequestArgs,
    /// Of least-latency.
    pub least_latency: LeastLatencyArgs,
    /// Of prefix-cache.
    pub prefix_cache: PrefixCacheArgs,
}

impl SchedulerConfig {
    /// Reads the `scheduler` member of a routerConfiguration. Null is a configuration without plugins.
    ///
    /// Arguments are read and checked whether or not their plugin is enabled. `disabled` lists have no effect. Of a
    /// name that is repeated the last weight and the last arguments count.
    ///
    /// # Errors
    ///
    /// If a Score plugin has no weight greater than 0, if the weight factor of least-latency is not within 0..=1, or if
    /// a member is not of the kind that it must be. The caller puts `failed to Load Scheduler: ` in front.
    pub fn from_value(value: &Value) -> Result<(Self, Vec<Warning>), ConfigError> {
        read::scheduler(value)
    }

    /// The enabled Filter plugins, in the order in which they run.
    pub fn filters(&self) -> impl Iterator<Item = &'static Plugin> {
        self.filters.iter().copied()
    }

    /// The enabled Score plugins.
    #[must_use]
    pub fn scores(&self) -> &[Weighted] {
        &self.scores
    }

    /// The arguments.
    #[must_use]
    pub fn args(&self) -> &PluginArgs {
        &self.args
    }
}

impl Default for SchedulerConfig {
    /// What the Helm chart ships.
    fn default() -> Self {
        let named = |names: &[&str]| {
            PLUGINS
                .iter()
                .filter(|p| names.contains(&p.name))
                .collect::<Vec<_>>()
        };
        let scores = named(&[
            "least-request",
            "gpu-usage",
            "least-latency",
            "prefix-cache",
        ])
        .into_iter();
        Self {
            filters: named(&["least-request"]),
            scores: scores
                .map(|plugin| Weighted {
                    plugin,
                    weight: NonZeroU64::MIN,
                })
                .collect(),
            args: PluginArgs::default(),
        }
    }
}
