//! The demo's fleets: one server, one route.

use super::MODEL;
use http::HeaderName;
use routing::fleet::{
    Endpoint, Engine, Fleet, KeySource, ModelRoute, ModelServer, ObjectName, PdGroup, Pod, PodIds,
    Rule, SessionSticky, Target, TargetRef, TrafficPolicy,
};
use routing::pd::Connector;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A fleet of these engines.
pub(super) fn fleet(engines: &[SocketAddr], ids: &PodIds) -> Fleet {
    of(server(engines, ids, None))
}

/// The same engines, with sessions named by `x-session-id`.
pub(super) fn sessions(engines: &[SocketAddr], ids: &PodIds) -> Fleet {
    let sticky = SessionSticky {
        affinity: Duration::from_secs(300),
        sources: vec![KeySource::Header(HeaderName::from_static("x-session-id"))],
    };
    of(server(engines, ids, Some(sticky)))
}

/// The same engines, even ones for prefill and odd ones for decode, two neighbours a group.
pub(super) fn pairs(engines: &[SocketAddr], ids: &PodIds) -> Fleet {
    let role = |name: &str| [("role".to_owned(), name.to_owned())].into();
    let group = PdGroup {
        group_key: "group".into(),
        prefill_labels: role("prefill"),
        decode_labels: role("decode"),
    };
    of(server(engines, ids, None).disaggregate(&group, Connector::Nixl))
}

fn labels(number: usize) -> BTreeMap<String, String> {
    let role = if number.is_multiple_of(2) {
        "prefill"
    } else {
        "decode"
    };
    [
        ("app".to_owned(), MODEL.to_owned()),
        ("group".to_owned(), (number / 2).to_string()),
        ("role".to_owned(), role.to_owned()),
    ]
    .into()
}

fn server(
    engines: &[SocketAddr],
    ids: &PodIds,
    session_sticky: Option<SessionSticky>,
) -> ModelServer {
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
                labels: labels(number),
                load: Arc::default(),
            })
        })
        .collect();
    ModelServer::new(
        name,
        None,
        Engine::Vllm,
        TrafficPolicy {
            session_sticky,
            ..TrafficPolicy::default()
        },
        serde_json::Value::Null,
        pods,
    )
}

fn of(server: ModelServer) -> Fleet {
    let name = server.name.clone();
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
