//! ModelServer: a group of pods that serve one model.

use super::meta::{self, Meta, checked, read_labels};
use super::session_sticky;
use crate::fields::{Fields, Reader};
use crate::names;
use routing::fleet::{Endpoint, Engine, PdGroup, TrafficPolicy};
use routing::pd::Connector;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A checked ModelServer.
#[derive(Debug)]
pub struct ModelServer {
    /// Who it is.
    pub meta: Meta,
    /// `spec.model`: replaces the model's name on the way to the pods. At most 256 characters.
    pub model: Option<String>,
    /// `spec.inferenceEngine`.
    pub engine: Engine,
    /// `spec.workloadSelector.matchLabels`: selects pods in a cluster; never empty.
    pub match_labels: BTreeMap<String, String>,
    /// `spec.workloadSelector.pdGroup`: prefill and decode are done by different pods.
    pub pd_group: Option<PdGroup>,
    /// `spec.workloadPort.port`.
    pub port: u16,
    /// `spec.trafficPolicy`.
    pub policy: TrafficPolicy,
    /// `spec.kvConnector.type`: how the KV cache goes from prefill to decode, if not in the engine's usual way.
    pub kv_connector: Option<Connector>,
    /// `spec.endpoints`, which stands in for the pods of a cluster.
    pub pods: Vec<PodSpec>,
    /// The whole `spec` as written.
    pub spec: serde_json::Value,
}

/// One item of `spec.endpoints`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSpec {
    /// Unique in its server.
    pub name: String,
    /// Where it listens; the port is the server's unless set.
    pub endpoint: Endpoint,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

const ENGINES: &[(&str, Engine)] = &[("vLLM", Engine::Vllm), ("SGLang", Engine::Sglang)];
const PROTOCOLS: &[(&str, bool)] = &[("http", false), ("https", true)];
const CONNECTORS: &[(&str, Connector)] = &[
    ("http", Connector::Http),
    ("lmcache", Connector::LmCache),
    ("nixl", Connector::Nixl),
    ("mooncake", Connector::Mooncake),
];

/// `retry.retryInterval` unless set, as in the CRD.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn read(mut fields: Fields<'_>) -> Option<ModelServer> {
    let meta = meta::read(&mut fields);
    let at = fields.required("spec");
    fields.skip(&["status"]);
    fields.finish();

    let at = at?;
    let mut spec = at.object()?;
    let model = spec
        .optional("model")
        .and_then(|m| m.string_up_to(256))
        .map(str::to_owned);
    let engine = spec
        .required("inferenceEngine")
        .and_then(|e| e.one_of(ENGINES));
    let selector = spec
        .required_or("workloadSelector", "workloadSelector must be specified")
        .and_then(|selector| read_selector(&selector));
    let port = spec
        .required("workloadPort")
        .and_then(|port| read_port(&port));
    let policy = spec
        .optional("trafficPolicy")
        .and_then(|p| read_policy(&p))
        .unwrap_or_default();
    let connector_at = spec.optional("kvConnector");
    if let (Some(at), Some((_, None))) = (&connector_at, &selector) {
        at.note("has no effect without workloadSelector.pdGroup");
    }
    let kv_connector = connector_at.and_then(|kv| read_connector(&kv));
    let pods = read_pods(&at, spec.optional("endpoints"), port);
    spec.finish();

    let (match_labels, pd_group) = selector?;
    Some(ModelServer {
        meta: meta?,
        model: model.filter(|m| !m.is_empty()),
        engine: engine?,
        match_labels,
        pd_group,
        port: port?,
        policy,
        kv_connector,
        pods,
        spec: at.to_json(),
    })
}

fn read_selector(at: &Reader<'_>) -> Option<(BTreeMap<String, String>, Option<PdGroup>)> {
    let mut fields = at.object()?;
    let labels = read_some_labels(&mut fields, "matchLabels");
    let pd_group = fields
        .optional("pdGroup")
        .and_then(|group| read_pd_group(&group));
    fields.finish();
    Some((labels?, pd_group))
}

fn read_pd_group(at: &Reader<'_>) -> Option<PdGroup> {
    let mut fields = at.object()?;
    let key = fields.required_or("groupKey", "groupKey must be specified");
    let prefill_labels = read_some_labels(&mut fields, "prefillLabels");
    let decode_labels = read_some_labels(&mut fields, "decodeLabels");
    fields.finish();
    let key = key?;
    let group_key = key.string()?;
    if group_key.is_empty() {
        key.missing("groupKey must be specified");
    } else if !names::is_label_key(group_key) {
        key.invalid(format_args!("{group_key:?}"), "invalid label key");
    }
    Some(PdGroup {
        group_key: group_key.to_owned(),
        prefill_labels: prefill_labels?,
        decode_labels: decode_labels?,
    })
}

/// Labels of which there must be one at least.
fn read_some_labels(
    fields: &mut Fields<'_>,
    name: &'static str,
) -> Option<BTreeMap<String, String>> {
    const NONE: &str = "labels must contain at least one label";
    let at = fields.required_or(name, NONE)?;
    if at.entries()?.is_empty() {
        at.missing(NONE);
        return None;
    }
    Some(read_labels(&at, "invalid selector: "))
}

fn read_port(at: &Reader<'_>) -> Option<u16> {
    let mut fields = at.object()?;
    let port = fields
        .required("port")
        .and_then(|port| port.integer(1..=65535));
    if let Some(protocol) = fields.optional("protocol")
        && protocol.one_of(PROTOCOLS) == Some(true)
    {
        protocol.note("https has no effect: the router speaks plain HTTP to pods");
    }
    fields.finish();
    port
}

fn read_policy(at: &Reader<'_>) -> Option<TrafficPolicy> {
    let mut fields = at.object()?;
    let timeout = fields
        .optional("timeout")
        .and_then(|t| t.duration())
        .filter(|t| !t.is_zero());
    let mut policy = TrafficPolicy {
        timeout,
        ..TrafficPolicy::default()
    };
    if let Some(mut retry) = fields.optional("retry").and_then(|r| r.object()) {
        // The CRD has no lower bound.
        policy.attempts = retry
            .optional("attempts")
            .and_then(|a| a.integer::<i32>(i64::from(i32::MIN)..=i64::from(i32::MAX)))
            .map(|attempts| u32::try_from(attempts).unwrap_or(0));
        policy.retry_interval = retry
            .optional("retryInterval")
            .and_then(|r| r.duration())
            .unwrap_or(RETRY_INTERVAL);
        retry.finish();
    }
    policy.session_sticky = fields
        .optional("sessionSticky")
        .and_then(|s| session_sticky::read(&s));
    fields.finish();
    Some(policy)
}

fn read_connector(at: &Reader<'_>) -> Option<Connector> {
    let mut fields = at.object()?;
    let kind = fields
        .optional("type")
        .map_or(Some(Connector::Http), |kind| kind.one_of(CONNECTORS));
    fields.finish();
    kind
}

/// The endpoints, which are for manifests only.
fn read_pods(spec: &Reader<'_>, endpoints: Option<Reader<'_>>, port: Option<u16>) -> Vec<PodSpec> {
    match (endpoints, spec.sink().in_cluster()) {
        (Some(endpoints), true) => {
            endpoints
                .warn("endpoints has no effect in a cluster: the pods are those that workloadSelector selects");
            Vec::new()
        }
        (None, true) => Vec::new(),
        // A wrong port is reported once, not once more for every endpoint.
        (Some(endpoints), false) => read_endpoints(&endpoints, port.unwrap_or(1)),
        (None, false) => {
            // Right for a cluster, whose manifests are checked here, too.
            spec.note("endpoints is not set: it has the pods that workloadSelector selects in a cluster, and none here");
            Vec::new()
        }
    }
}

fn read_endpoints(at: &Reader<'_>, port: u16) -> Vec<PodSpec> {
    let mut lines = HashMap::new();
    let items = at.list(usize::MAX).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| read_endpoint(item, port, &mut lines))
        .collect()
}

/// `lines` holds the line of every name so far.
fn read_endpoint<'a>(
    at: &Reader<'a>,
    server_port: u16,
    lines: &mut HashMap<&'a str, u32>,
) -> Option<PodSpec> {
    let mut fields = at.object()?;
    let name_at = fields.required("name");
    let address = fields.required("address");
    let port = fields
        .optional("port")
        .map_or(Some(server_port), |port| port.integer(1..=65535));
    let labels = fields
        .optional("labels")
        .map(|labels| read_labels(&labels, ""))
        .unwrap_or_default();
    fields.finish();
    let name = name_at
        .as_ref()
        .and_then(|name| checked(name, names::check_endpoint_name));
    if let (Some(at), Some(name)) = (&name_at, name)
        && let Some(first) = lines.insert(name, at.line())
    {
        at.error(format!(
            "Duplicate value: {name:?}: already used in line {first}"
        ));
    }
    let address = address.and_then(|address| checked(&address, names::check_address));
    let endpoint = Endpoint {
        host: address?.into(),
        port: port?,
    };
    Some(PodSpec {
        name: name?.to_owned(),
        endpoint,
        labels,
    })
}
