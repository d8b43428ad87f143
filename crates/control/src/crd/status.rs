//! What the router writes into its resources.

#![expect(dead_code, reason = "a description: only its shape is used")]

use schemars::JsonSchema;

/// What the router made of the object.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(super) struct Status {
    /// The generation of the object that this is about.
    observed_generation: Option<i64>,
    /// What is so, by type.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    conditions: Option<Vec<Condition>>,
}

/// What the router made of the object.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(super) struct ModelServerStatus {
    /// The generation of the object that this is about.
    observed_generation: Option<i64>,
    /// Pods that the selector matches.
    matched_replicas: Option<i32>,
    /// Pods among them that take requests.
    ready_replicas: Option<i32>,
    /// What is so, by type.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    conditions: Option<Vec<Condition>>,
}

/// As `metav1.Condition` of Kubernetes, bounds included.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Condition {
    /// What it is about, such as `Ready`.
    #[schemars(
        rename = "type",
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    kind: String,
    /// Whether it is so.
    status: ConditionStatus,
    /// Why, as one word.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    reason: String,
    /// Why, in words.
    #[schemars(length(max = 32768))]
    message: String,
    /// Since when.
    #[schemars(extend("format" = "date-time"))]
    last_transition_time: String,
    /// The generation of the object that this is about.
    #[schemars(range(min = 0))]
    observed_generation: Option<i64>,
}

#[derive(JsonSchema)]
enum ConditionStatus {
    True,
    False,
    Unknown,
}
