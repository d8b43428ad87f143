//! ModelServer.

#![expect(dead_code, reason = "a description: only its shape is used")]

use schemars::JsonSchema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `kubectl get modelservers`.
pub(super) fn columns() -> Value {
    json!([
        {"name": "Engine", "type": "string", "jsonPath": ".spec.inferenceEngine",
         "description": "Inference engine of the pods"},
        {"name": "Port", "type": "integer", "jsonPath": ".spec.workloadPort.port",
         "description": "Port of the pods"},
        {"name": "Protocol", "type": "string", "jsonPath": ".spec.workloadPort.protocol",
         "description": "Protocol of the pods"},
        super::age(),
    ])
}

/// What the pods run, how they are found, and how they are asked.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(super) struct ModelServerSpec {
    /// Name that the pods know the model by. It replaces the `model` of a request, unless the route was found by the name
    /// of a LoRA adapter. If it is not set, requests keep their `model`.
    #[schemars(length(max = 256))]
    model: Option<String>,
    /// Engine that the pods run.
    inference_engine: InferenceEngine,
    /// Which pods of the namespace belong to the server.
    workload_selector: WorkloadSelector,
    /// Where the pods listen, for requests and for metrics.
    workload_port: WorkloadPort,
    /// How the pods are asked.
    traffic_policy: Option<TrafficPolicy>,
    /// How the KV cache goes from prefill to decode pods.
    kv_connector: Option<KvConnectorSpec>,
    /// Pods by address, for a router that reads its resources from files. A router in a cluster finds its pods by
    /// workloadSelector and takes no notice of them.
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(JsonSchema)]
enum InferenceEngine {
    #[schemars(rename = "vLLM")]
    Vllm,
    SGLang,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct WorkloadSelector {
    /// Labels that every pod of the server has. At least one.
    match_labels: Option<BTreeMap<String, String>>,
    /// Set for prefill/decode disaggregation: how the pods of the two roles are told apart and put together.
    pd_group: Option<PdGroup>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct PdGroup {
    /// Key of the label whose value the prefill and decode pods of one group share. Only pods of one group are paired.
    group_key: String,
    /// Labels of the prefill pods. At least one.
    prefill_labels: BTreeMap<String, String>,
    /// Labels of the decode pods. At least one.
    decode_labels: BTreeMap<String, String>,
}

#[derive(JsonSchema)]
struct WorkloadPort {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    port: i32,
    /// Kept for compatibility: the router speaks plain HTTP to pods.
    #[schemars(extend("default" = "http"))]
    protocol: Option<Protocol>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum Protocol {
    Http,
    Https,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct TrafficPolicy {
    /// Longest wait for the head of a pod's response, such as `30s`. Unbounded if not set or zero.
    timeout: Option<String>,
    /// When a request is sent again.
    retry: Option<Retry>,
    /// Sends the requests of one session to one pod. Off if not set.
    session_sticky: Option<SessionSticky>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Retry {
    /// How often a request is sent again, at most.
    attempts: Option<i32>,
    /// Pause before a request is sent again, such as `100ms`.
    #[schemars(extend("default" = "100ms"))]
    retry_interval: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct SessionSticky {
    /// How long a session without requests is remembered, in seconds.
    #[schemars(range(min = 1), extend("default" = 300))]
    session_affinity_seconds: Option<i32>,
    /// Where the session's key is looked for, in this order. The first value that is not empty is the key; a request
    /// without one is scheduled as usual.
    #[schemars(length(min = 1, max = 16))]
    sources: Vec<KeySource>,
}

#[derive(JsonSchema)]
struct KeySource {
    /// Kind of place.
    #[schemars(rename = "type")]
    kind: KeySourceType,
    /// Name of the header, query parameter, cookie or claim. Headers are compared without regard to case.
    #[schemars(length(min = 1))]
    name: String,
}

#[derive(JsonSchema)]
enum KeySourceType {
    Header,
    Query,
    Cookie,
    #[schemars(rename = "JWTClaim")]
    JwtClaim,
}

#[derive(JsonSchema)]
struct KvConnectorSpec {
    /// Protocol of the transfer.
    #[schemars(rename = "type", extend("default" = "http"))]
    kind: Option<KvConnector>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum KvConnector {
    Http,
    LmCache,
    Nixl,
    Mooncake,
}

#[derive(JsonSchema)]
struct Endpoint {
    /// Unique in its server. The pod is called `<ModelServer>:<name>`.
    name: String,
    /// IP address or host name, without a port.
    address: String,
    /// Port; workloadPort.port if not set.
    #[schemars(range(min = 1, max = 65535))]
    port: Option<i32>,
    /// Labels of the pod.
    labels: Option<BTreeMap<String, String>>,
}
