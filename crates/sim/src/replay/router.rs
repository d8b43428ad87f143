//! One router: the project's own decisions, over pods that are simulated.

use super::workload::Workload;
use crate::rng::Rng;
use http::HeaderMap;
use prefix_index::PodId;
use routing::fleet::{
    Endpoint, Engine, Fleet, Load, ModelRoute, ModelServer, ObjectName, Pod, PodIds, Rule, Target,
    TargetRef, TrafficPolicy,
};
use routing::request::{ModelRequest, extract};
use routing::route::route;
use routing::schedule::{Ask, Matches, Observer, Plan, Row, Scheduler, SchedulerConfig};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plugin that remembers prompts.
const PREFIX_CACHE: &str = "prefix-cache";

/// A router with its own view of the pods.
pub(super) struct Router {
    pub(super) scheduler: Scheduler,
    block_bytes: usize,
    /// Whether a plugin looks at prompts.
    predicts: bool,
    models: Vec<Arc<str>>,
    ids: PodIds,
    /// By the pods' numbers, which are their ids; `None` is gone.
    pods: Vec<Option<Arc<Pod>>>,
    fleet: Fleet,
    draws: Rng,
}

/// A decision, and what the router expected of it.
pub(super) struct Decision {
    pub(super) plan: Plan,
    /// Bytes of the prompt's start that a pod was known to hold; those with none are left out.
    pub(super) matched: SmallVec<[(PodId, usize); 8]>,
}

impl Decision {
    /// Bytes of the prompt that the router expected in this pod's cache.
    pub(super) fn expected(&self, pod: PodId) -> usize {
        let found = self.matched.iter().find(|(id, _)| *id == pod);
        found.map_or(0, |(_, bytes)| *bytes)
    }
}

impl Router {
    /// A router without pods. `models` are those that will be asked for.
    pub(super) fn new(config: &SchedulerConfig, models: &[Arc<str>], draws: Rng) -> Self {
        Self {
            scheduler: Scheduler::new(config),
            predicts: config
                .scores()
                .iter()
                .any(|w| w.plugin.name == PREFIX_CACHE),
            block_bytes: config.args().prefix_cache.block_bytes,
            models: models.to_vec(),
            ids: PodIds::default(),
            pods: Vec::new(),
            fleet: Fleet::default(),
            draws,
        }
    }

    /// Whether it expects anything of the pods' caches.
    pub(super) fn predicts(&self) -> bool {
        self.predicts
    }

    /// A new pod, whose number is the next one.
    pub(super) fn join(&mut self) {
        let id = self.ids.next();
        self.scheduler.admit(id);
        self.pods.push(Some(Arc::new(Pod {
            id,
            name: ObjectName::new("default", &format!("pod-{}", id.0)),
            uid: None,
            endpoint: Endpoint {
                host: "sim".into(),
                port: 8000,
            },
            engine: Engine::Vllm,
            labels: BTreeMap::new(),
            load: Arc::new(Load::default()),
        })));
        self.publish();
    }

    /// A pod is gone from the fleet.
    pub(super) fn leave(&mut self, pod: usize) {
        if let Some(left) = self.pods.get_mut(pod).and_then(Option::take) {
            self.scheduler.forget(left.id);
            self.publish();
        }
    }

    /// A pod of this number, unless it is gone.
    pub(super) fn pod(&self, number: usize) -> Option<&Arc<Pod>> {
        self.pods.get(number)?.as_ref()
    }

    fn publish(&mut self) {
        let name = ObjectName::new("default", "replay");
        let server = ModelServer::new(
            name.clone(),
            None,
            Engine::Vllm,
            TrafficPolicy::default(),
            serde_json::Value::Null,
            self.pods.iter().flatten().cloned().collect(),
        );
        let routes = self.models.iter().map(|model| {
            let rule = Rule {
                name: None,
                matches: None,
                targets: vec![Target {
                    to: TargetRef::Server(name.clone()),
                    weight: None,
                }],
            };
            Arc::new(ModelRoute {
                name: name.clone(),
                model_name: Some(Arc::clone(model)),
                lora_adapters: Vec::new(),
                has_parent_refs: false,
                rules: vec![rule],
                spec: serde_json::Value::Null,
            })
        });
        self.fleet = Fleet::new(vec![Arc::new(server)], routes.collect());
    }

    /// Decides as the live router does: route, filter, score, pick. `None` where the live router would refuse.
    pub(super) fn decide(&mut self, request: &ModelRequest<'_>, path: &str) -> Option<Decision> {
        let headers = HeaderMap::new();
        let draw = self.draws.next_u64();
        let routed = route(&self.fleet, &request.model, path, &headers, draw).ok()?;
        let ask = Ask {
            model: &request.model,
            prompt: &request.prompt,
            draw: self.draws.next_u64(),
        };
        let mut seen = Seen {
            block_bytes: self.block_bytes,
            matched: SmallVec::new(),
        };
        let plan = self.scheduler.plan(&ask, routed.server, &mut seen).ok()?;
        Some(Decision {
            plan,
            matched: seen.matched,
        })
    }
}

/// Keeps what the prefix look-up found.
struct Seen {
    block_bytes: usize,
    matched: SmallVec<[(PodId, usize); 8]>,
}

impl Observer for Seen {
    fn matched(&mut self, rows: &[Row<'_>], matches: &Matches) {
        let found = rows.iter().zip(&matches.blocks).filter(|(_, n)| **n > 0);
        let bytes = |blocks: u32| (blocks as usize).saturating_mul(self.block_bytes);
        self.matched = found.map(|(row, n)| (row.pod.id, bytes(*n))).collect();
    }
}

/// The models that a workload asks for, each once.
pub(super) fn models(workload: &Workload) -> Vec<Arc<str>> {
    use super::Content;
    let mut all: Vec<Arc<str>> = Vec::new();
    for request in &workload.requests {
        let model = match &request.content {
            Content::Made { model, .. } => Arc::clone(model),
            Content::Body(body) => match extract(&request.path, None, body) {
                Ok(request) => request.model.as_ref().into(),
                Err(_) => continue,
            },
        };
        if all.last() != Some(&model) && !all.contains(&model) {
            all.push(model);
        }
    }
    all
}
