//! The demo's fleet: one server, one route.

use super::MODEL;
use routing::fleet::{
    Endpoint, Engine, Fleet, Load, ModelRoute, ModelServer, ObjectName, Pod, PodIds, Rule, Target,
    TargetRef, TrafficPolicy,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// A fleet of these engines.
pub(super) fn fleet(engines: &[SocketAddr], ids: &PodIds) -> Fleet {
    let name = ObjectName::new("default", MODEL);
    let pods = engines
        .iter()
        .enumerate()
        .map(|(number, address)| {
            Arc::new(Pod {
                id: ids.next(),
                name: ObjectName::new("default", &format!("{MODEL}:engine-{number}")),
                uid: None,
                endpoint: Endpoint {
                    host: address.ip().to_string().into(),
                    port: address.port(),
                },
                engine: Engine::Vllm,
                labels: [("app".to_owned(), MODEL.to_owned())].into(),
                load: Load::default(),
            })
        })
        .collect();
    let server = ModelServer::new(
        name.clone(),
        None,
        Engine::Vllm,
        TrafficPolicy::default(),
        serde_json::Value::Null,
        pods,
    );
    let rule = Rule {
        name: None,
        matches: None,
        targets: vec![Target {
            to: TargetRef::Server(name.clone()),
            weight: None,
        }],
    };
    let route = ModelRoute {
        name,
        model_name: Some(MODEL.into()),
        lora_adapters: Vec::new(),
        has_parent_refs: false,
        rules: vec![rule],
        spec: serde_json::Value::Null,
    };
    Fleet::new(vec![Arc::new(server)], vec![Arc::new(route)])
}
