//! ModelRoute.

#![expect(dead_code, reason = "a description: only its shape is used")]

use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Which requests go to which model servers.
#[derive(JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    extend("x-kubernetes-validations" = [{
        "rule": "self.modelName != \"\" || size(self.loraAdapters) > 0",
        "message": "ModelName and LoraAdapters cannot both be empty",
    }])
)]
pub(super) struct ModelRouteSpec {
    /// The `model` that clients ask for. It cannot be changed later.
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "self == oldSelf",
        "message": "modelName is immutable",
    }]))]
    model_name: Option<String>,
    /// Names of LoRA adapters that clients may ask for as `model`.
    #[schemars(length(max = 10))]
    lora_adapters: Option<Vec<String>>,
    /// Gateways that the route belongs to. A route without any is served on the router's own port.
    parent_refs: Option<Vec<ParentReference>>,
    /// Tried in order; the first rule that matches a request decides.
    #[schemars(length(max = 16))]
    rules: Vec<Rule>,
    /// Tokens that the route may use in a unit of time. Unbounded if not set.
    rate_limit: Option<RateLimit>,
}

/// A Gateway. Bounds and defaults are those of the Gateway API.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct ParentReference {
    /// API group of the parent.
    #[schemars(
        length(max = 253),
        regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
        extend("default" = "gateway.networking.k8s.io")
    )]
    group: Option<String>,
    /// Kind of the parent.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"),
        extend("default" = "Gateway")
    )]
    kind: Option<String>,
    /// Namespace of the parent; the route's own if not set.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    namespace: Option<String>,
    /// Name of the parent.
    #[schemars(length(min = 1, max = 253))]
    name: String,
    /// Name of a listener of the parent.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    section_name: Option<String>,
    /// Port of the parent.
    #[schemars(range(min = 1, max = 65535))]
    port: Option<i32>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct Rule {
    /// Shown in logs.
    name: Option<String>,
    /// What a request must be like. Every request matches if not set.
    model_match: Option<ModelMatch>,
    /// Where a request goes; one of them is drawn by weight.
    #[schemars(length(min = 1, max = 16))]
    target_models: Vec<TargetModel>,
}

#[derive(JsonSchema)]
struct ModelMatch {
    /// Headers of the request; all of them must match.
    headers: Option<BTreeMap<String, StringMatch>>,
    /// Path of the request's URL.
    uri: Option<StringMatch>,
    /// Body of the request.
    body: Option<BodyMatch>,
}

/// How a text is compared. If several are set, exact comes before prefix and prefix before regex; if none is, any text
/// matches.
#[derive(JsonSchema)]
struct StringMatch {
    /// The whole text.
    exact: Option<String>,
    /// The beginning of the text.
    prefix: Option<String>,
    /// A regular expression in RE2's syntax that is found somewhere in the text.
    regex: Option<String>,
}

#[derive(JsonSchema)]
struct BodyMatch {
    /// The `model` of the request, exactly.
    model: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    extend("x-kubernetes-validations" = [{
        "rule": "(has(self.modelServerName) && self.modelServerName != \"\") != \
                 (has(self.externalModelProviderName) && self.externalModelProviderName != \"\")",
        "message": "exactly one of modelServerName or externalModelProviderName must be set",
    }])
)]
struct TargetModel {
    /// Name of a ModelServer in the route's namespace.
    model_server_name: Option<String>,
    /// Name of an ExternalModelProvider in the route's namespace.
    external_model_provider_name: Option<String>,
    /// Share of the requests, relative to the other targets.
    #[schemars(range(min = 0, max = 100), extend("default" = 100))]
    weight: Option<i32>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
struct RateLimit {
    /// Tokens of prompts in a unit of time. Unbounded if not set.
    #[schemars(range(min = 1))]
    input_tokens_per_unit: Option<i32>,
    /// Generated tokens in a unit of time. Unbounded if not set.
    #[schemars(range(min = 1))]
    output_tokens_per_unit: Option<i32>,
    /// The unit of time.
    #[schemars(extend("default" = "second"))]
    unit: Option<RateUnit>,
    /// Set to share the limit between routers.
    global: Option<GlobalLimit>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum RateUnit {
    Second,
    Minute,
    Hour,
    Day,
    Month,
}

#[derive(JsonSchema)]
struct GlobalLimit {
    /// The Redis server that holds the count.
    redis: Option<Redis>,
}

#[derive(JsonSchema)]
struct Redis {
    /// `host:port`.
    address: String,
}
