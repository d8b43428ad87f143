//! What a plugin is.

use super::{Ask, ConfigError, PluginArgs, PrefixCacheArgs, Row, Score, Warning};
use prefix_index::{Hashes, PodId, PrefixIndex, Recorded};
use serde_json::Value;
use smallvec::SmallVec;
use std::fmt::Debug;

/// Drops pods that must not get the request.
pub trait FilterPlugin: Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Whether the pod stays a candidate.
    fn keep(&self, ask: &Ask<'_>, row: &Row<'_>) -> bool;
}

/// Says how good each candidate is for the request.
pub trait ScorePlugin: Debug + Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Writes the score of every row to the same place of `out`, or abstains and writes nothing.
    ///
    /// `rows` is never empty and ascending by pod id; `out` is as long.
    fn score(&self, ask: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict;

    /// What is to be recorded of a request that a session binds to a pod, although nothing was scored. Nothing unless the
    /// plugin was told to.
    fn pinned(&self, _ask: &Ask<'_>) -> Option<Memo> {
        None
    }

    /// A pod may get requests from now on.
    fn admit(&self, _pod: PodId) {}

    /// A pod is gone: drops what the plugin knows about it and returns the number of entries that were dropped.
    fn forget(&self, _pod: PodId) -> usize {
        0
    }

    /// A pod served the request that this plugin's memo is from.
    fn served(&self, _memo: &Memo, _pod: PodId) -> Recorded {
        Recorded::default()
    }

    /// Number of entries that the plugin keeps for all pods together.
    fn entries(&self) -> usize {
        0
    }

    /// What prefix-cache keeps, for those who look inside; the other plugins have none of it.
    fn prefix_cache(&self) -> Option<(&PrefixCacheArgs, &PrefixIndex)> {
        None
    }
}

/// How a Score plugin answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request holds nothing to score by; the other plugins decide.
    Abstained,
    /// Every row has a score.
    Scored,
    /// Every row has a score, by prefix matches.
    Matched(Matches),
}

/// What a prefix look-up found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matches {
    /// Hashes of the prompt's blocks; never empty.
    pub hashes: Hashes,
    /// Leading blocks that each row's pod holds; 0 for pods that got no place among the best.
    pub blocks: SmallVec<[u32; 32]>,
    /// The greatest of `blocks`.
    pub best: u32,
}

/// What a plan remembers of the request until it was served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memo {
    /// The hashes of the prompt's blocks.
    Prefix(Hashes),
}

type BuildFilter = fn(&PluginArgs) -> Box<dyn FilterPlugin>;
type BuildScore = fn(&PluginArgs) -> Box<dyn ScorePlugin>;

/// One row of the plugin table.
#[derive(Debug)]
pub struct Plugin {
    /// Its name in the configuration.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Its arguments.
    pub args: &'static [Arg],
    /// Reads its arguments into the settings.
    pub(super) read:
        fn(&Plugin, &Value, &mut PluginArgs, &mut Vec<Warning>) -> Result<(), ConfigError>,
    /// Builds it for the Filter role.
    pub(super) filter: Option<BuildFilter>,
    /// Builds it for the Score role.
    pub(super) score: Option<BuildScore>,
}

impl Plugin {
    /// Whether it can be enabled under `plugins.Filter`.
    #[must_use]
    pub fn is_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether it can be enabled under `plugins.Score`.
    #[must_use]
    pub fn is_score(&self) -> bool {
        self.score.is_some()
    }
}

/// An argument of a plugin.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// Its key under `args`, in any case.
    pub name: &'static str,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// What it means, with its unit.
    pub about: &'static str,
}
