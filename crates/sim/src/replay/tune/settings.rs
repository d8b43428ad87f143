//! The settings that are searched, and how they are written.

use crate::rng::Rng;
use routing::schedule::{ConfigError, SchedulerConfig};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A setting that may be changed.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    /// The plugin.
    plugin: &'static str,
    /// Its argument; none for its weight.
    arg: Option<&'static str>,
    /// What is tried, beside the value at the start.
    values: &'static [f64],
}

const PREFIX: &str = "prefix-cache";
const LEAST_REQUEST: &str = "least-request";
const LEAST_LATENCY: &str = "least-latency";
const GPU_USAGE: &str = "gpu-usage";
/// The plugins whose weights are searched, in the order of the configuration that ships.
const SCORES: [&str; 4] = [LEAST_REQUEST, GPU_USAGE, LEAST_LATENCY, PREFIX];

/// Everything that is searched. A weight of 0 is a plugin that is not enabled.
const DIMENSIONS: [Dimension; 10] = [
    dimension(
        PREFIX,
        Some("blockSizeToHash"),
        &[32.0, 64.0, 128.0, 256.0, 512.0],
    ),
    dimension(
        PREFIX,
        Some("maxBlocksToMatch"),
        &[32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0],
    ),
    dimension(
        PREFIX,
        Some("maxHashCacheSize"),
        &[
            12_500.0, 25_000.0, 50_000.0, 100_000.0, 200_000.0, 500_000.0,
        ],
    ),
    dimension(PREFIX, Some("topKMatches"), &[2.0, 5.0, 10.0, 20.0]),
    dimension(PREFIX, None, &[1.0, 2.0, 3.0, 5.0, 8.0]),
    dimension(LEAST_REQUEST, None, &[0.0, 1.0, 2.0, 3.0, 5.0]),
    dimension(
        LEAST_REQUEST,
        Some("maxWaitingRequests"),
        &[5.0, 10.0, 20.0, 50.0],
    ),
    dimension(GPU_USAGE, None, &[0.0, 1.0, 2.0]),
    dimension(LEAST_LATENCY, None, &[0.0, 1.0, 2.0]),
    dimension(
        LEAST_LATENCY,
        Some("TTFTTPOTWeightFactor"),
        &[0.0, 0.25, 0.5, 0.75, 1.0],
    ),
];

const fn dimension(
    plugin: &'static str,
    arg: Option<&'static str>,
    values: &'static [f64],
) -> Dimension {
    Dimension {
        plugin,
        arg,
        values,
    }
}

/// A point of the search: one value for each setting that is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: [f64; DIMENSIONS.len()],
    /// Filter plugins, which are not searched.
    filters: Vec<&'static str>,
}

/// One setting of two that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its place, for [`Settings::with`].
    pub(super) index: usize,
    /// What it is called.
    pub name: String,
    /// Its value here.
    pub from: f64,
    /// Its value there.
    pub to: f64,
}

impl Settings {
    /// The settings of a configuration.
    #[must_use]
    pub fn of(config: &SchedulerConfig) -> Self {
        let args = config.args();
        let weight = |name: &str| {
            let found = config.scores().iter().find(|w| w.plugin.name == name);
            found.map_or(0.0, |w| w.weight.get() as f64)
        };
        let prefix = &args.prefix_cache;
        Self {
            values: [
                prefix.block_bytes as f64,
                prefix.max_blocks as f64,
                prefix.capacity as f64,
                prefix.top_k as f64,
                weight(PREFIX),
                weight(LEAST_REQUEST),
                f64::from(args.least_request.max_waiting),
                weight(GPU_USAGE),
                weight(LEAST_LATENCY),
                args.least_latency.ttft_weight,
            ],
            filters: config.filters().map(|plugin| plugin.name).collect(),
        }
    }

    /// A neighbour by chance: each setting stays with one half of probability. Prefix-cache stays enabled.
    pub(super) fn vary(&self, rng: &mut Rng) -> Self {
        let mut varied = self.clone();
        for (value, dimension) in varied.values.iter_mut().zip(&DIMENSIONS) {
            if rng.below(2) == 0 {
                *value = dimension.values[rng.below(dimension.values.len())];
            }
        }
        varied
    }

    /// Number of settings that are searched.
    pub(super) const SEARCHED: usize = DIMENSIONS.len();

    /// The same settings but for one, with every other value that is tried of that one.
    pub(super) fn neighbours(&self, index: usize) -> impl Iterator<Item = Self> {
        DIMENSIONS[index].values.iter().filter_map(move |value| {
            let mut neighbour = self.clone();
            neighbour.values[index] = *value;
            (neighbour != *self).then_some(neighbour)
        })
    }

    /// The same settings but for one, which is as in `other`.
    pub(super) fn with(&self, index: usize, other: &Self) -> Self {
        let mut changed = self.clone();
        changed.values[index] = other.values[index];
        changed
    }

    /// What differs in `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let pairs = self.values.iter().zip(&other.values);
        let differs = |(index, (from, to)): (usize, (&f64, &f64))| {
            #[allow(clippy::float_cmp, reason = "both were copied from the same lists")]
            let same = from == to;
            (!same).then(|| Difference {
                index,
                name: name(&DIMENSIONS[index]),
                from: *from,
                to: *to,
            })
        };
        pairs.enumerate().filter_map(differs).collect()
    }

    /// As the value of `scheduler` in a routerConfiguration.
    #[must_use]
    pub fn scheduler(&self) -> Value {
        let weighted = |name: &&str| {
            let weight = self.weight(name);
            (weight > 0.0).then(|| json!({"name": name, "weight": number(weight)}))
        };
        let args = |plugin: &&str| {
            let of = self.args(plugin);
            let args: serde_json::Map<_, _> = of
                .map(|(arg, value)| (arg.to_owned(), number(value)))
                .collect();
            (!args.is_empty()).then(|| json!({"name": plugin, "args": args}))
        };
        json!({
            "pluginConfig": SCORES.iter().filter_map(args).collect::<Vec<_>>(),
            "plugins": {
                "Filter": {"enabled": self.filters},
                "Score": {"enabled": SCORES.iter().filter_map(weighted).collect::<Vec<_>>()},
            },
        })
    }

    /// As a scheduler takes it.
    ///
    /// # Errors
    /// Never for settings of a valid configuration, and those made from it.
    pub fn config(&self) -> Result<SchedulerConfig, ConfigError> {
        SchedulerConfig::from_value(&self.scheduler()).map(|(config, _)| config)
    }

    /// As a routerConfiguration in YAML, ready to be used.
    #[must_use]
    pub fn yaml(&self) -> String {
        let mut text = String::from("scheduler:\n  pluginConfig:\n");
        // Writing to a string does not fail.
        for plugin in SCORES {
            let mut args = self.args(plugin).peekable();
            if args.peek().is_some() {
                let _ = writeln!(text, "  - name: {plugin}\n    args:");
            }
            for (arg, value) in args {
                let _ = writeln!(text, "      {arg}: {value}");
            }
        }
        text.push_str("  plugins:\n    Filter:\n      enabled:");
        text.push_str(if self.filters.is_empty() {
            " []\n"
        } else {
            "\n"
        });
        for filter in &self.filters {
            let _ = writeln!(text, "      - {filter}");
        }
        text.push_str("    Score:\n      enabled:\n");
        for plugin in SCORES {
            let weight = self.weight(plugin);
            if weight > 0.0 {
                let _ = writeln!(text, "      - name: {plugin}\n        weight: {weight}");
            }
        }
        text
    }

    fn weight(&self, plugin: &str) -> f64 {
        let mut all = DIMENSIONS.iter().zip(self.values);
        let found = all.find(|(d, _)| d.plugin == plugin && d.arg.is_none());
        found.map_or(0.0, |(_, weight)| weight)
    }

    fn args(&self, plugin: &str) -> impl Iterator<Item = (&'static str, f64)> {
        let all = DIMENSIONS.iter().zip(self.values);
        all.filter(move |(d, _)| d.plugin == plugin)
            .filter_map(|(d, value)| Some((d.arg?, value)))
    }
}

/// What a person calls it.
fn name(dimension: &Dimension) -> String {
    match dimension.arg {
        Some(arg) => arg.to_owned(),
        None => format!("weight of {}", dimension.plugin),
    }
}

/// A whole number where it is one: arguments of integers refuse others.
fn number(value: f64) -> Value {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the values of the search and of a configuration are small"
    )]
    match value.fract() == 0.0 {
        true => json!(value as i64),
        false => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_of_the_search_is_a_configuration() {
        let start = Settings::of(&SchedulerConfig::default());
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let point = start.vary(&mut rng);
            let (config, warnings) = SchedulerConfig::from_value(&point.scheduler()).unwrap();
            assert!(warnings.is_empty(), "{warnings:?}");
            assert_eq!(Settings::of(&config), point);
        }
    }

    #[test]
    fn differences_are_named_and_can_be_taken_back_one_by_one() {
        let start = Settings::of(&SchedulerConfig::default());
        let mut other = start.clone();
        other.values[1] = 1024.0;
        other.values[5] = 0.0;
        let found = start.differences(&other);
        let names: Vec<_> = found
            .iter()
            .map(|d| (d.name.as_str(), d.from, d.to))
            .collect();
        assert_eq!(
            names,
            [
                ("maxBlocksToMatch", 128.0, 1024.0),
                ("weight of least-request", 1.0, 0.0)
            ]
        );
        let back = other.with(found[0].index, &start);
        assert_eq!(start.differences(&back).len(), 1);
    }

    #[test]
    fn a_person_can_use_the_configuration() {
        let mut settings = Settings::of(&SchedulerConfig::default());
        settings.values[8] = 0.0;
        assert_eq!(
            settings.yaml(),
            "scheduler:
  pluginConfig:
  - name: least-request
    args:
      maxWaitingRequests: 10
  - name: least-latency
    args:
      TTFTTPOTWeightFactor: 0.5
  - name: prefix-cache
    args:
      blockSizeToHash: 64
      maxBlocksToMatch: 128
      maxHashCacheSize: 50000
      topKMatches: 5
  plugins:
    Filter:
      enabled:
      - least-request
    Score:
      enabled:
      - name: least-request
        weight: 1
      - name: gpu-usage
        weight: 1
      - name: prefix-cache
        weight: 1
"
        );
    }
}
