//! A group of pods that serve one model.

use super::{Disaggregated, Engine, ObjectName, PdGroup, Pod, PodId, SessionSticky};
use crate::pd::Connector;
use std::sync::Arc;
use std::time::Duration;

/// How requests to a server's pods are bounded, repeated and kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficPolicy {
    /// Longest wait of one attempt for its response headers; `None` is unbounded. The body is never bounded.
    pub timeout: Option<Duration>,
    /// Most pods tried for a request, where set.
    pub attempts: Option<u32>,
    /// Pause between two attempts.
    pub retry_interval: Duration,
    /// What binds requests of one session to one pod; `None` is off.
    pub session_sticky: Option<SessionSticky>,
}

/// A ModelServer with the pods that serve right now.
#[derive(Debug)]
pub struct ModelServer {
    /// `namespace/name`.
    pub name: ObjectName,
    /// Replaces the request's model name on the way to the pod, unless the route matched an adapter name.
    pub model: Option<Arc<str>>,
    /// What its pods run.
    pub engine: Engine,
    /// Bounds and retries.
    pub policy: TrafficPolicy,
    /// The manifest's `spec`, for the debug page.
    pub spec: serde_json::Value,
    pods: Vec<Arc<Pod>>,
    pod_ids: Vec<PodId>,
    disaggregated: Option<Box<Disaggregated>>,
}

impl ModelServer {
    /// A server with these pods, in any order.
    #[must_use]
    pub fn new(
        name: ObjectName,
        model: Option<Arc<str>>,
        engine: Engine,
        policy: TrafficPolicy,
        spec: serde_json::Value,
        mut pods: Vec<Arc<Pod>>,
    ) -> Self {
        pods.sort_by_key(|p| p.id);
        let pod_ids = pods.iter().map(|p| p.id).collect();
        Self {
            name,
            model,
            engine,
            policy,
            spec,
            pods,
            pod_ids,
            disaggregated: None,
        }
    }

    /// The same server, with each request answered by a prefill and a decode pod.
    #[must_use]
    pub fn disaggregate(mut self, group: &PdGroup, connector: Connector) -> Self {
        let pods = Disaggregated::new(&self.pods, group, connector);
        self.disaggregated = Some(Box::new(pods));
        self
    }

    /// The pods by role, if prefill and decode are done by different ones.
    #[must_use]
    pub fn disaggregated(&self) -> Option<&Disaggregated> {
        self.disaggregated.as_deref()
    }

    /// The pods, ascending by id.
    #[must_use]
    pub fn pods(&self) -> &[Arc<Pod>] {
        &self.pods
    }

    /// The ids of [`Self::pods`], in the same order.
    #[must_use]
    pub fn pod_ids(&self) -> &[PodId] {
        &self.pod_ids
    }
}
