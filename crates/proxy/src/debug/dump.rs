//! `/debug/config_dump`: the snapshot as the router sees it, under the names that the original gives.

use crate::app::App;
use routing::fleet::{Fleet, ModelRoute, ModelServer, ObjectName, Pod};
use serde_json::{Value, json};
use std::sync::Arc;

/// The answer to a path below `/debug/config_dump/`: `None` when there is no such page, `Err(kind)` when there is no
/// such object.
pub(super) fn answer(app: &App, path: &str) -> Option<Result<Value, &'static str>> {
    let fleet = app.fleet();
    let mut parts = path.splitn(4, '/');
    match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        (kind, None, None, None) => all(app, &fleet, kind).map(Ok),
        ("namespaces", Some(namespace), Some(kind), Some(name)) => {
            one(app, &fleet, kind, &ObjectName::new(namespace, name))
        }
        _ => None,
    }
}

fn all(app: &App, fleet: &Fleet, kind: &str) -> Option<Value> {
    let list: Vec<Value> = match kind {
        "modelroutes" => fleet.routes().iter().map(|r| route(r)).collect(),
        "modelservers" => fleet.servers().map(|s| server(s)).collect(),
        "pods" => fleet.pods().values().map(|p| pod(app, fleet, p)).collect(),
        "gateways" | "httproutes" | "inferencepools" => Vec::new(),
        _ => return None,
    };
    // The original writes a list that was never made as null, and its readers expect that.
    Some(json!({ kind: if list.is_empty() { Value::Null } else { list.into() } }))
}

fn one(
    app: &App,
    fleet: &Fleet,
    kind: &str,
    name: &ObjectName,
) -> Option<Result<Value, &'static str>> {
    Some(match kind {
        "modelroutes" => fleet
            .routes()
            .iter()
            .find(|r| r.name == *name)
            .map(|r| route(r))
            .ok_or("ModelRoute"),
        "modelservers" => fleet.server(name).map(|s| server(s)).ok_or("ModelServer"),
        "pods" => pods_alone(app, fleet, name).ok_or("Pod"),
        "gateways" => Err("Gateway"),
        "httproutes" => Err("HTTPRoute"),
        "inferencepools" => Err("InferencePool"),
        _ => return None,
    })
}

fn route(route: &ModelRoute) -> Value {
    json!({"name": route.name.name(), "namespace": route.name.namespace(), "spec": route.spec})
}

fn server(server: &ModelServer) -> Value {
    let mut value = json!({
        "name": server.name.name(),
        "namespace": server.name.namespace(),
        "spec": server.spec,
        "associatedPods": names(server.pods()),
    });
    if let Some(pods) = server.disaggregated() {
        value["decodePods"] = names(pods.decode_pods()).into();
        value["prefillPods"] = pods
            .groups()
            .iter()
            .flat_map(|group| names(group))
            .collect();
    }
    value
}

fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
    pods.iter().map(|p| p.name.as_str()).collect()
}

fn pod(app: &App, fleet: &Fleet, pod: &Arc<Pod>) -> Value {
    let servers: Vec<_> = fleet
        .servers()
        .filter(|s| s.pod_ids().binary_search(&pod.id).is_ok())
        .map(|s| s.name.as_str())
        .collect();
    let gauges = pod.load.last();
    let age = pod
        .load
        .scraped_at_ms()
        .map(|at| app.uptime_ms().saturating_sub(at));
    json!({
        "name": pod.name.name(),
        "namespace": pod.name.namespace(),
        "engine": pod.engine.as_str(),
        "models": *pod.load.models(),
        "modelServers": servers,
        "metrics": {
            "gpuCacheUsage": gauges.kv_usage,
            "requestWaitingNum": gauges.waiting,
            "requestRunningNum": gauges.running,
            "tpot": gauges.tpot,
            "ttft": gauges.ttft,
        },
        "metricsKnown": pod.load.known().is_some(),
        "metricsAgeMs": age,
        "inFlight": pod.load.in_flight(),
        "idleConnections": app.upstreams.pool(pod).idle(),
    })
}

/// The pod of this name. ModelServers that ask for it by different ports or engines each have one; the page is an object,
/// so the others are a member of the first.
fn pods_alone(app: &App, fleet: &Fleet, name: &ObjectName) -> Option<Value> {
    let pods = fleet.pods();
    let named = pods.values().filter(|pod| pod.name == *name);
    let mut alone = named.map(|pod| pod_alone(app, fleet, pod));
    let mut first = alone.next()?;
    let others: Vec<_> = alone.collect();
    if !others.is_empty() {
        first["others"] = others.into();
    }
    Some(first)
}

fn pod_alone(app: &App, fleet: &Fleet, alone: &Arc<Pod>) -> Value {
    let mut value = pod(app, fleet, alone);
    value["podInfo"] = json!({
        "podIP": &*alone.endpoint.host,
        "port": alone.endpoint.port,
        "phase": "Running",
        "labels": alone.labels,
    });
    value
}
