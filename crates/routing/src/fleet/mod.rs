//! The immutable snapshot of the world that a request sees from its routing to its end.
//!
//! A [`Fleet`] is built by the control plane, published as a whole and never changed. Only the live load figures that
//! hang off each [`Pod`] move; a pod that is unchanged between two snapshots is the same `Arc<Pod>` in both, and one of which
//! only the labels changed keeps its id and its [`Load`], so that its figures and its in-flight count survive.

mod disaggregated;
mod load;
mod name;
mod pod;
pub mod re2;
mod route;
mod server;
mod sticky;

pub use disaggregated::{Disaggregated, PdGroup, PdRole};
pub use load::{CacheTokens, Gauges, Load};
pub use name::ObjectName;
pub use pod::{Endpoint, Engine, InFlight, Pod, PodIds};
pub use prefix_index::PodId;
pub use route::{ModelRoute, Rule, RuleMatch, StringMatch, Target, TargetRef};
pub use server::{ModelServer, TrafficPolicy};
pub use sticky::{KeySource, SessionSticky};

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One version of the world.
#[derive(Debug, Default)]
pub struct Fleet {
    servers: BTreeMap<ObjectName, Arc<ModelServer>>,
    routes: Vec<Arc<ModelRoute>>,
    by_model: HashMap<Arc<str>, Vec<Arc<ModelRoute>>>,
    by_lora: HashMap<Arc<str>, Vec<Arc<ModelRoute>>>,
}

impl Fleet {
    /// A snapshot of these servers and routes. `routes` are in order of precedence: of two routes for one model the
    /// earlier one is asked first (oldest first: creation timestamp, resource version, then name).
    #[must_use]
    pub fn new(servers: Vec<Arc<ModelServer>>, routes: Vec<Arc<ModelRoute>>) -> Self {
        let mut by_model: HashMap<Arc<str>, Vec<Arc<ModelRoute>>> = HashMap::new();
        let mut by_lora: HashMap<Arc<str>, Vec<Arc<ModelRoute>>> = HashMap::new();
        for route in &routes {
            if let Some(model) = &route.model_name {
                by_model
                    .entry(model.clone())
                    .or_default()
                    .push(route.clone());
            }
            for adapter in &route.lora_adapters {
                by_lora
                    .entry(adapter.clone())
                    .or_default()
                    .push(route.clone());
            }
        }
        let servers = servers.into_iter().map(|s| (s.name.clone(), s)).collect();
        Self {
            servers,
            routes,
            by_model,
            by_lora,
        }
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &ObjectName) -> Option<&Arc<ModelServer>> {
        self.servers.get(name)
    }

    /// All servers, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ModelServer>> {
        self.servers.values()
    }

    /// All routes, in order of precedence.
    #[must_use]
    pub fn routes(&self) -> &[Arc<ModelRoute>] {
        &self.routes
    }

    /// Every pod once. A pod may serve several servers.
    #[must_use]
    pub fn pods(&self) -> BTreeMap<PodId, &Arc<Pod>> {
        self.servers()
            .flat_map(|s| s.pods())
            .map(|p| (p.id, p))
            .collect()
    }

    /// The pods of this snapshot that another one does not have, ascending.
    #[must_use]
    pub fn pods_not_in(&self, other: &Self) -> Vec<PodId> {
        let others = other.pods();
        let mine = self.pods().into_keys();
        mine.filter(|id| !others.contains_key(id)).collect()
    }

    /// The routes for a model as the client spells it, and whether the name is that of a LoRA adapter: base model
    /// names first, adapters only when no base model has the name.
    #[must_use]
    pub fn routes_for(&self, model: &str) -> Option<(&[Arc<ModelRoute>], bool)> {
        let base = self
            .by_model
            .get_key_value(model)
            .map(|(_, r)| (r.as_slice(), false));
        base.or_else(|| self.by_lora.get(model).map(|r| (r.as_slice(), true)))
    }

    /// The fleet's own copy of a model name that some route knows, for labels that outlive a request.
    #[must_use]
    pub fn known_model(&self, model: &str) -> Option<&Arc<str>> {
        self.by_model
            .get_key_value(model)
            .or_else(|| self.by_lora.get_key_value(model))
            .map(|(k, _)| k)
    }

    /// Names of all models and adapters that clients may ask for, sorted, each once.
    #[must_use]
    pub fn models(&self) -> Vec<Arc<str>> {
        let mut all: Vec<_> = self
            .by_model
            .keys()
            .chain(self.by_lora.keys())
            .cloned()
            .collect();
        all.sort();
        all.dedup();
        all
    }
}
