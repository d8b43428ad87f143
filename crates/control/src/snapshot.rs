//! Checked objects and the fleet before to the fleet after.

use crate::resources::{self, Objects};
use routing::fleet::{Fleet, ModelServer, ObjectName, Pod, PodId, PodIds};
use std::collections::HashMap;
use std::sync::Arc;

/// The fleet that the objects describe.
///
/// A pod with the name, endpoint, engine and labels of a pod of `previous` is that pod, with its load figures and its
/// requests in flight. Any other is a new pod with a new id: a pod whose address changed is another process with an
/// empty cache.
///
/// Routes are ordered oldest first: by creation time, where a route without one comes first as it does in Go; then by
/// resource version, compared as text; then by name.
#[must_use]
pub fn build(objects: &Objects, previous: &Fleet, ids: &PodIds) -> Fleet {
    let known: HashMap<&ObjectName, &Arc<Pod>> = previous
        .servers()
        .flat_map(|server| server.pods())
        .map(|pod| (&pod.name, pod))
        .collect();
    let servers = objects
        .servers
        .iter()
        .map(|server| Arc::new(build_server(server, &known, ids)))
        .collect();
    let mut routes: Vec<_> = objects.routes.iter().collect();
    routes.sort_by_key(|r| (r.meta.created, &r.meta.resource_version, &r.meta.name));
    Fleet::new(
        servers,
        routes.into_iter().map(|r| Arc::clone(&r.route)).collect(),
    )
}

/// The pods of `previous` that are no longer in `next`, ascending: what was learnt about them can be forgotten.
#[must_use]
pub fn departed(previous: &Fleet, next: &Fleet) -> Vec<PodId> {
    let next = next.pods();
    previous
        .pods()
        .into_keys()
        .filter(|id| !next.contains_key(id))
        .collect()
}

fn build_server(
    server: &resources::ModelServer,
    known: &HashMap<&ObjectName, &Arc<Pod>>,
    ids: &PodIds,
) -> ModelServer {
    let name = &server.meta.name;
    let pod = |spec: &resources::PodSpec| {
        let full = ObjectName::new(name.namespace(), &format!("{}:{}", name.name(), spec.name));
        let same = |pod: &&&Arc<Pod>| {
            pod.endpoint == spec.endpoint
                && pod.engine == server.engine
                && pod.labels == spec.labels
        };
        known.get(&full).filter(same).map_or_else(
            || {
                Arc::new(Pod {
                    id: ids.next(),
                    name: full.clone(),
                    endpoint: spec.endpoint.clone(),
                    engine: server.engine,
                    labels: spec.labels.clone(),
                    load: routing::fleet::Load::default(),
                })
            },
            |pod| Arc::clone(pod),
        )
    };
    ModelServer::new(
        name.clone(),
        server.model.as_deref().map(Into::into),
        server.engine,
        server.policy.clone(),
        server.spec.clone(),
        server.pods.iter().map(pod).collect(),
    )
}
