//! What the checks look at, in the shape of the debug pages. A member that is missing or null is empty: a router of
//! another version is examined by what it tells.

use super::{ENOUGH, Exposition};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What runs, and what it warned of at its start.
    pub router: RouterFacts,
    /// The prefix cache.
    pub prefix: Prefix,
    /// The latest decisions that were sampled, newest first.
    pub decisions: Vec<Decision>,
    /// What prompts of one model share.
    pub prompts: Vec<Prompts>,
    /// All pods.
    pub pods: Vec<Pod>,
    /// The metrics page of each replica; the first one belongs to the router that told the rest.
    pub replicas: Vec<Replica>,
}

/// The answers of the debug pages.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// `/debug/router`
    pub router: Value,
    /// `/debug/prefix-cache`
    pub prefix: Value,
    /// `/debug/decisions`
    pub decisions: Value,
    /// `/debug/prompts`
    pub prompts: Value,
    /// `/debug/config_dump/pods`
    pub pods: Value,
}

impl Facts {
    /// From what the debug pages answered.
    ///
    /// # Errors
    /// If a member has another type than it is known to have.
    pub fn new(answers: Answers, replicas: Vec<Replica>) -> Result<Self, serde_json::Error> {
        Ok(Self {
            router: read(answers.router)?,
            prefix: read(answers.prefix)?,
            decisions: list(answers.decisions, "decisions")?,
            prompts: list(answers.prompts, "models")?,
            pods: list(answers.pods, "pods")?,
            replicas,
        })
    }

    /// Whether a model had enough requests for the checks to judge by.
    #[must_use]
    pub fn can_judge(&self) -> bool {
        let mut models = self.models().into_iter();
        models.any(|model| self.scored(model).len() >= ENOUGH)
    }

    /// Models that there are decisions of.
    #[must_use]
    pub fn models(&self) -> BTreeSet<&str> {
        self.decisions.iter().map(|d| d.model.as_str()).collect()
    }

    /// Decisions on requests to a model that prefix-cache scored.
    #[must_use]
    pub fn scored(&self, model: &str) -> Vec<&Decision> {
        let all = self.decisions.iter();
        all.filter(|d| d.model == model && !d.pinned && d.hashed_blocks > 0)
            .collect()
    }

    /// What prompts of a model share, if enough of them were sampled.
    #[must_use]
    pub fn prompts_of(&self, model: &str) -> Option<&Prompts> {
        self.prompts
            .iter()
            .find(|p| p.model == model && p.samples >= 2)
    }
}

fn read<T: DeserializeOwned + Default>(value: Value) -> Result<T, serde_json::Error> {
    match value {
        Value::Null => Ok(T::default()),
        value => serde_json::from_value(value),
    }
}

/// The list under a key; an empty list is null on some pages.
fn list<T: DeserializeOwned>(mut value: Value, key: &str) -> Result<Vec<T>, serde_json::Error> {
    match value.get_mut(key).map(Value::take) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) => serde_json::from_value(list),
    }
}

/// `/debug/router`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RouterFacts {
    /// Seconds since the start.
    pub uptime_seconds: Option<f64>,
    /// Enabled Filter plugins.
    pub filters: Vec<String>,
    /// Enabled Score plugins.
    pub scores: Vec<Weighted>,
    /// What was warned of at the start.
    pub warnings: Vec<StartWarning>,
    /// Whether the file of the configuration holds something else than at the start.
    pub configuration_changed: Option<bool>,
}

impl RouterFacts {
    /// What a point of a plugin's score counts.
    #[must_use]
    pub fn weight(&self, plugin: &str) -> f64 {
        let known = self.scores.iter().find(|s| s.name == plugin);
        known.map_or(1.0, |s| s.weight)
    }
}

/// A Score plugin and its weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Weighted {
    /// The plugin.
    pub name: String,
    /// What a point of its score counts.
    pub weight: f64,
}

/// A warning about the configuration.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct StartWarning {
    /// `unknown-argument`, `bad-arguments`, `unknown-plugin`, `random-among-others`, `configuration`.
    pub kind: String,
    /// The line that was logged.
    pub text: String,
}

/// `/debug/prefix-cache`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Prefix {
    /// The plugin's arguments; nothing when it is not enabled.
    pub configuration: Option<Configuration>,
    /// Entries of each pod.
    pub pods: Vec<PodEntries>,
    /// Entries of all pods.
    pub entries: u64,
    /// Evictions since the start.
    pub evictions: u64,
    /// How much is asked for, where entries were evicted.
    #[serde(rename = "workingSet")]
    pub working_set: Option<WorkingSet>,
    /// Match ratios.
    pub ratio: Windows,
    /// Predicted and actual reuse of each model.
    pub models: Vec<Model>,
}

/// The arguments of prefix-cache.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Bytes of a block.
    pub block_size_to_hash: u64,
    /// Blocks of a prompt that are hashed, at most.
    pub max_blocks_to_match: u64,
    /// Entries of a pod, at most.
    pub max_hash_cache_size: u64,
    /// What a point of the score counts.
    pub weight: f64,
}

impl Configuration {
    /// Bytes of a prompt that are looked at.
    #[must_use]
    pub fn coverage(&self) -> u64 {
        self.block_size_to_hash
            .saturating_mul(self.max_blocks_to_match)
    }
}

/// Entries of one pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodEntries {
    /// `namespace/name`
    pub pod: String,
    /// Entries now.
    pub entries: u64,
    /// Entries at most.
    pub capacity: u64,
    /// Entries dropped since the start because the list was full.
    pub evictions: u64,
}

/// What was looked up in the last minutes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkingSet {
    /// Different blocks.
    pub blocks: u64,
    /// Of the blocks that no pod held, the share that had been looked up before.
    pub again: Option<f64>,
}

/// Match ratios of the latest minutes.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Windows {
    /// One minute.
    #[serde(rename = "1m")]
    pub one: Window,
    /// Five.
    #[serde(rename = "5m")]
    pub five: Window,
    /// Fifteen.
    #[serde(rename = "15m")]
    pub fifteen: Window,
}

/// The match ratio over some time.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Window {
    /// Requests that were scored.
    pub requests: u64,
    /// Blocks that the best pod had.
    pub matched_blocks: u64,
    /// Blocks of the prompts.
    pub hashed_blocks: u64,
    /// The ratio; nothing without requests.
    pub ratio: Option<f64>,
    /// Entries that were dropped because a list was full.
    pub evictions: u64,
}

/// How well the cache predicts what engines reuse.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Model {
    /// The model.
    pub model: String,
    /// Requests that were compared.
    pub requests: u64,
    /// Share of the prompt that the router took for cached.
    pub predicted: Option<f64>,
    /// Share that the engine had cached.
    pub actual: Option<f64>,
    /// `usage` of the answers, or counters of the `engine`.
    pub source: String,
}

/// `/debug/decisions`: one of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Decision {
    /// The model that the client asked for.
    pub model: String,
    /// The server that its route led to.
    pub model_server: String,
    /// The pod that it was given to.
    pub pod: String,
    /// The pod of its prefill, in a pair.
    pub prefill_pod: Option<String>,
    /// Leading blocks that this pod was sent before.
    pub matched_blocks: u64,
    /// Blocks of the prompt that were hashed.
    pub hashed_blocks: u64,
    /// Which pod in turn it is; 1 is the one chosen first.
    pub attempt: Option<u64>,
    /// A session chose the pod.
    pub pinned: bool,
    /// What the client was answered.
    pub status: Option<u16>,
    /// The best of the pods that were compared.
    pub candidates: Vec<Candidate>,
    /// Pods that each filter has dropped.
    pub filtered: BTreeMap<String, u64>,
}

/// A pod that was compared.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Candidate {
    /// `namespace/name`
    pub pod: String,
    /// Sum of scores times weights.
    pub total: f64,
    /// Score of each plugin, 0..=100.
    pub scores: BTreeMap<String, f64>,
    /// Leading blocks that this pod was sent before.
    pub matched_blocks: u64,
}

impl Decision {
    /// The most blocks that any pod had.
    #[must_use]
    pub fn best_match(&self) -> u64 {
        let others = self.candidates.iter().map(|c| c.matched_blocks);
        others.fold(self.matched_blocks, u64::max)
    }

    /// The match ratio: share of the blocks that the best pod had.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        share(self.best_match(), self.hashed_blocks)
    }
}

/// `/debug/prompts`: what the latest prompts of a model share, in bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Prompts {
    /// The model.
    pub model: String,
    /// Prompts that were compared.
    pub samples: u64,
    /// Their lengths.
    pub prompt_bytes: Spread,
    /// Common beginning of every two of them.
    pub pair_bytes: Spread,
    /// Common beginning of each with the one it shares most with.
    pub best_bytes: Spread,
    /// Whether they are the same again soon after that.
    pub resumes: Option<Resumes>,
    /// Offsets below this are exact; above it they are whole blocks.
    pub exact_below: u64,
}

/// Prompts that part from the one they share most with, and are the same again soon after.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resumes {
    /// How many of the samples.
    pub samples: u64,
    /// Where they part, in bytes; the middle one.
    pub from: u64,
    /// Bytes after which they are the same again; the middle one.
    pub after: u64,
}

/// Least, middle and greatest.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Spread {
    /// The least.
    pub min: u64,
    /// The one in the middle.
    pub median: u64,
    /// The greatest.
    pub max: u64,
}

/// `/debug/config_dump/pods`: one of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// `vLLM` or `SGLang`.
    pub engine: String,
    /// Servers that it belongs to.
    pub model_servers: Vec<String>,
    /// Whether the last reading of its metrics is recent enough to be believed.
    pub metrics_known: bool,
    /// Age of that reading, in milliseconds.
    pub metrics_age_ms: Option<u64>,
}

/// The metrics page of one replica.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    /// Where it was read.
    pub address: String,
    /// The page some seconds ago.
    pub before: Option<Exposition>,
    /// The page now.
    pub now: Exposition,
}

impl Replica {
    /// How much the sum of these series grew between the readings.
    #[must_use]
    pub fn growth(&self, name: &str) -> f64 {
        let before = self.before.as_ref().map_or(0.0, |page| page.sum(name));
        let now = self.now.sum(name);
        // A router that started again counts from 0.
        if now < before { now } else { now - before }
    }
}

/// A share of something, 0 of nothing.
#[allow(
    clippy::cast_precision_loss,
    reason = "shares of counts far below 2^52"
)]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}
