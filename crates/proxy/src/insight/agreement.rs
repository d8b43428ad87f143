//! Predicted against actual: how much of a prompt the router thought a pod to hold, and how much the engine found, over the
//! last 15 minutes, so that what was put right shows.
//!
//! Actual is what the engine reports with each answer. An engine that reports nothing still counts, on its metrics page,
//! the prompt tokens that it looked up and found; that is compared as a whole.

mod sums;

use super::Trail;
use super::history::LONGEST;
use crate::metrics::{Metrics, ModelLabel, Text};
use parking_lot::Mutex;
use prefix_index::PodId;
use prometheus_client::metrics::family::Family;
use routing::fleet::{CacheTokens, Fleet, Pod, TargetRef};
use routing::request::Api;
use routing::schedule::PrefixCacheArgs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use sums::Sums;

/// Bytes of a token, where the engine does not say how many a prompt has.
const BYTES_PER_TOKEN: usize = 4;

/// The sums of each model, and what the counters of each pod said last.
#[derive(Debug, Default)]
pub(crate) struct Agreements {
    models: Family<ModelLabel, Sums>,
    counters: Mutex<HashMap<PodId, CacheTokens>>,
}

/// A request that a pod has served.
pub(crate) struct Served<'a> {
    pub(crate) model: &'a Text,
    pub(crate) api: Api,
    pub(crate) trail: &'a Trail,
    pub(crate) pod: &'a Pod,
    /// How the prompt was looked up.
    pub(crate) args: &'a PrefixCacheArgs,
}

impl Agreements {
    /// A pod has served a request that was scored.
    ///
    /// Engines that leave out a count of 0 are known by having reported one before: from then on nothing means 0.
    pub(crate) fn add(&self, metrics: &Metrics, served: &Served<'_>) {
        let Served {
            model, trail, pod, ..
        } = served;
        let bytes = trail.prompt_bytes;
        let predicted = trail.predicted().share(pod.id, bytes, served.args);
        let Some(predicted) = predicted else {
            return;
        };
        let label = label(model);
        let sums = self.models.get_or_create(&label);
        let usage = trail.usage().filter(|usage| usage.whole_prompt > 0);
        let tokens = usage.map_or_else(
            || bytes.div_ceil(BYTES_PER_TOKEN) as u64,
            |usage| usage.whole_prompt,
        );
        sums.scored(predicted, tokens);
        let Some(usage) = usage else {
            return;
        };
        let cached = match usage.cached {
            Some(tokens) => {
                pod.load.reports_cached(served.api);
                tokens
            }
            None if pod.load.has_reported_cached(served.api) => 0,
            None => return,
        };
        let actual = (cached as f64 / usage.whole_prompt as f64).min(1.0);
        sums.reported(predicted, actual);
        let observe = |family: &crate::metrics::Histograms<ModelLabel>, value| {
            family.get_or_create(&label).observe(value);
        };
        observe(&metrics.predicted_ratio, predicted);
        observe(&metrics.actual_ratio, actual);
        observe(&metrics.prediction_error, actual - predicted);
    }

    /// Notes what the engines have counted, and the sums. To be called about once a second; `at` is the time since the
    /// start.
    pub(crate) fn note(&self, at: Duration, fleet: &Fleet) {
        let grown = self.grown(fleet);
        for name in fleet.models() {
            let Some(sums) = self.models.get(&label(&Text::from(Arc::clone(&name)))) else {
                continue;
            };
            for pod in pods(fleet, &name).values() {
                if let Some(tokens) = grown.get(&pod.id) {
                    sums.counted(*tokens);
                }
            }
            sums.note(at);
        }
    }

    /// By what the counters of each pod have grown.
    fn grown(&self, fleet: &Fleet) -> HashMap<PodId, CacheTokens> {
        let mut counters = self.counters.lock();
        let pods = fleet.pods();
        counters.retain(|id, _| pods.contains_key(id));
        let counting = pods
            .iter()
            .filter_map(|(id, pod)| Some((*id, pod.load.cache_tokens()?)));
        let grown = counting.map(|(id, now)| {
            let before = counters.insert(id, now).unwrap_or_default();
            let tokens = CacheTokens {
                queried: now.queried.saturating_sub(before.queried),
                hit: now.hit.saturating_sub(before.hit),
            };
            (id, tokens)
        });
        grown.collect()
    }

    /// The models of which both sides are known; `at` is the time since the start.
    pub(crate) fn json(&self, fleet: &Fleet, at: Duration) -> Vec<Value> {
        let models = fleet.models().into_iter();
        models
            .filter_map(|name| self.model(fleet, &name, at))
            .collect()
    }

    fn model(&self, fleet: &Fleet, name: &Arc<str>, at: Duration) -> Option<Value> {
        let sums = self.models.get(&label(&Text::from(Arc::clone(name))))?;
        let all = sums.over(LONGEST, at);
        let reported = all.reports().map(|sides| (sides, "usage"));
        let ((requests, predicted, actual), source) = reported.or_else(|| {
            let mut pods = pods(fleet, name).into_values();
            let counts = pods.any(|pod| pod.load.cache_tokens().is_some());
            let sides = counts.then(|| all.counters()).flatten();
            sides.map(|sides| (sides, "engine"))
        })?;
        Some(json!({
            "model": &**name,
            "requests": requests,
            "predicted": predicted,
            "actual": actual,
            "difference": actual - predicted,
            "source": source,
        }))
    }
}

fn label(model: &Text) -> ModelLabel {
    ModelLabel {
        model: model.clone(),
    }
}

/// The pods behind a model. One that several servers share counts once.
fn pods<'f>(fleet: &'f Fleet, model: &str) -> BTreeMap<PodId, &'f Arc<Pod>> {
    let routes = fleet
        .routes_for(model)
        .map_or(&[][..], |(routes, _)| routes);
    let targets = routes.iter().flat_map(|route| &route.rules);
    let targets = targets.flat_map(|rule| &rule.targets);
    let servers = targets.filter_map(|target| match &target.to {
        TargetRef::Server(name) => fleet.server(name),
        TargetRef::External(_) => None,
    });
    servers
        .flat_map(|server| server.pods())
        .map(|pod| (pod.id, pod))
        .collect()
}
