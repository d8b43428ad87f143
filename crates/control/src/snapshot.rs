//! Checked objects and the fleet before to the fleet after.

use crate::resources::{self, Objects};
use crate::selection::Selection;
use routing::fleet::{Endpoint, Engine, Fleet, ModelServer, ObjectName, Pod, PodIds};
use routing::pd::Connector;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The fleet that the objects describe.
///
/// The pods of a server are its endpoints and the ready pods of the cluster that its labels select. A pod that several
/// servers select with one port and one engine is one pod.
///
/// A pod with the name, uid, endpoint and engine of a pod of `previous` is that pod, with its id, its load figures and its
/// requests in flight; its labels are those of now, since they say nothing about the process. Any other is a new pod with a
/// new id: a pod whose address or uid changed is another process with an empty cache.
///
/// Routes are ordered oldest first: by creation time, where a route without one comes first as it does in Go; then by
/// resource version, compared as text; then by name.
#[must_use]
pub fn build(objects: &Objects, previous: &Fleet, ids: &PodIds) -> Fleet {
    let selection = Selection::new(&objects.servers, &objects.pods);
    let mut pods = Pods::of(previous, ids);
    let servers = objects
        .servers
        .iter()
        .map(|server| Arc::new(build_server(server, &selection, &mut pods)))
        .collect();
    let mut routes: Vec<_> = objects.routes.iter().collect();
    routes.sort_by_key(|r| (r.meta.created, &r.meta.resource_version, &r.meta.name));
    Fleet::new(
        servers,
        routes.into_iter().map(|r| Arc::clone(&r.route)).collect(),
    )
}

fn build_server<'a>(
    server: &'a resources::ModelServer,
    selection: &Selection<'a>,
    pods: &mut Pods<'_>,
) -> ModelServer {
    let name = &server.meta.name;
    let endpoints = server.pods.iter().map(|spec| Wanted {
        name: ObjectName::new(name.namespace(), &format!("{}:{}", name.name(), spec.name)),
        uid: None,
        host: &spec.endpoint.host,
        port: spec.endpoint.port,
        engine: server.engine,
        labels: &spec.labels,
    });
    let selected = selection.of(server).filter(|pod| pod.ready);
    let selected = selected.map(|pod| Wanted {
        name: pod.name.clone(),
        uid: Some(&pod.uid),
        host: &pod.ip,
        port: server.port,
        engine: server.engine,
        labels: &pod.labels,
    });
    let built = ModelServer::new(
        name.clone(),
        server.model.as_deref().map(Into::into),
        server.engine,
        server.policy.clone(),
        server.spec.clone(),
        endpoints
            .chain(selected)
            .map(|wanted| pods.get(wanted))
            .collect(),
    );
    match &server.pd_group {
        Some(group) => {
            let usual = || Connector::of_engine(server.engine);
            built.disaggregate(group, server.kv_connector.unwrap_or_else(usual))
        }
        None => built,
    }
}

/// What a pod is to be.
struct Wanted<'a> {
    name: ObjectName,
    uid: Option<&'a str>,
    host: &'a str,
    port: u16,
    engine: Engine,
    labels: &'a BTreeMap<String, String>,
}

impl Wanted<'_> {
    fn is(&self, pod: &Pod) -> bool {
        pod.uid.as_deref() == self.uid && *pod.endpoint.host == *self.host
    }
}

/// The pods before, and those made meanwhile.
struct Pods<'a> {
    /// A pod may be there once for each port and engine that servers ask it for.
    known: HashMap<(ObjectName, u16, Engine), Arc<Pod>>,
    ids: &'a PodIds,
}

impl<'a> Pods<'a> {
    fn of(previous: &Fleet, ids: &'a PodIds) -> Self {
        let key = |pod: &Pod| (pod.name.clone(), pod.endpoint.port, pod.engine);
        let pods = previous.servers().flat_map(|server| server.pods());
        let known = pods.map(|pod| (key(pod), Arc::clone(pod))).collect();
        Self { known, ids }
    }

    fn get(&mut self, wanted: Wanted<'_>) -> Arc<Pod> {
        let key = (wanted.name.clone(), wanted.port, wanted.engine);
        let same = self.known.get(&key).filter(|pod| wanted.is(pod));
        if let Some(pod) = same.filter(|pod| pod.labels == *wanted.labels) {
            return Arc::clone(pod);
        }
        let (id, load) = match same {
            Some(pod) => (pod.id, Arc::clone(&pod.load)),
            None => (self.ids.next(), Arc::default()),
        };
        let pod = Arc::new(Pod {
            id,
            name: wanted.name,
            uid: wanted.uid.map(Into::into),
            endpoint: Endpoint {
                host: wanted.host.into(),
                port: wanted.port,
            },
            engine: wanted.engine,
            labels: wanted.labels.clone(),
            load,
        });
        self.known.insert(key, Arc::clone(&pod));
        pod
    }
}
