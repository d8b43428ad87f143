//! Predicted against actual: how much of a prompt the router thought a pod to hold, and how much the engine found.
//!
//! Actual is what the engine reports with each answer. An engine that reports nothing still counts, on its metrics page,
//! the prompt tokens that it looked up and found; that is compared as a whole.

use super::Trail;
use crate::metrics::{Metrics, ModelLabel, Text};
use prometheus_client::metrics::family::Family;
use routing::fleet::{CacheTokens, Fleet, Pod, TargetRef};
use routing::request::Api;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shares are summed in millionths.
const MILLION: f64 = 1e6;

/// The sums of each model, since the start.
#[derive(Debug, Default)]
pub(crate) struct Agreements(Family<ModelLabel, Sums>);

#[derive(Debug, Default)]
struct Sums {
    /// Of all requests that were scored and served.
    scored: Shares,
    /// Of those whose engine reported.
    predicted: Shares,
    actual: Shares,
}

#[derive(Debug, Default)]
struct Shares {
    count: AtomicU64,
    millionths: AtomicU64,
}

impl Shares {
    fn add(&self, share: f64) {
        self.count.fetch_add(1, Relaxed);
        // Not negative, and at most a million.
        self.millionths.fetch_add((share * MILLION) as u64, Relaxed);
    }

    fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.millionths.load(Relaxed) as f64 / MILLION / count as f64)
    }
}

impl Agreements {
    /// A pod has served a request that was scored.
    ///
    /// Engines that leave out a count of 0 are known by having reported one before: from then on nothing means 0.
    pub(crate) fn add(&self, metrics: &Metrics, model: &Text, api: Api, trail: &Trail, pod: &Pod) {
        let Some(predicted) = trail.predicted().share(pod.id) else {
            return;
        };
        let label = ModelLabel {
            model: model.clone(),
        };
        let sums = self.0.get_or_create(&label);
        sums.scored.add(predicted);
        let Some(usage) = trail.usage().filter(|usage| usage.whole_prompt > 0) else {
            return;
        };
        let cached = match usage.cached {
            Some(tokens) => {
                pod.load.reports_cached(api);
                tokens
            }
            None if pod.load.has_reported_cached(api) => 0,
            None => return,
        };
        let actual = (cached as f64 / usage.whole_prompt as f64).min(1.0);
        sums.predicted.add(predicted);
        sums.actual.add(actual);
        let observe = |family: &crate::metrics::Histograms<ModelLabel>, value| {
            family.get_or_create(&label).observe(value);
        };
        observe(&metrics.predicted_ratio, predicted);
        observe(&metrics.actual_ratio, actual);
        observe(&metrics.prediction_error, actual - predicted);
    }

    /// The models of which both sides are known.
    pub(crate) fn json(&self, fleet: &Fleet) -> Vec<Value> {
        let models = fleet.models().into_iter();
        models.filter_map(|name| self.model(fleet, &name)).collect()
    }

    fn model(&self, fleet: &Fleet, name: &str) -> Option<Value> {
        let label = ModelLabel {
            model: Text::from(name),
        };
        let sums = self.0.get(&label)?;
        let (requests, predicted, actual, source) = match sums.actual.mean() {
            Some(actual) => (
                sums.predicted.count(),
                sums.predicted.mean()?,
                actual,
                "usage",
            ),
            None => {
                let actual = engines(fleet, name).share()?;
                (sums.scored.count(), sums.scored.mean()?, actual, "engine")
            }
        };
        Some(json!({
            "model": name,
            "requests": requests,
            "predicted": predicted,
            "actual": actual,
            "difference": actual - predicted,
            "source": source,
        }))
    }
}

/// What the engines behind a model have counted.
fn engines(fleet: &Fleet, model: &str) -> CacheTokens {
    let routes = fleet
        .routes_for(model)
        .map_or(&[][..], |(routes, _)| routes);
    let targets = routes.iter().flat_map(|route| &route.rules);
    let targets = targets.flat_map(|rule| &rule.targets);
    let servers = targets.filter_map(|target| match &target.to {
        TargetRef::Server(name) => fleet.server(name),
        TargetRef::External(_) => None,
    });
    // A pod that several servers share counts once.
    let pods: BTreeMap<_, _> = servers
        .flat_map(|server| server.pods())
        .map(|pod| (pod.id, pod))
        .collect();
    let counted = pods.values().filter_map(|pod| pod.load.cache_tokens());
    counted.fold(CacheTokens::default(), |sum, pod| CacheTokens {
        queried: sum.queried + pod.queried,
        hit: sum.hit + pod.hit,
    })
}
