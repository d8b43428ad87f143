//! ExternalModelProvider.

#![expect(dead_code, reason = "a description: only its shape is used")]

use schemars::JsonSchema;
use std::collections::BTreeMap;

/// Where the provider is, whose API it speaks, and how the router proves itself.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(super) struct ExternalModelProviderSpec {
    /// Whose API the provider speaks.
    #[schemars(extend("default" = "OpenAI"))]
    provider_type: Option<ProviderType>,
    /// Replaces the `model` of a request.
    #[schemars(length(max = 256))]
    model: Option<String>,
    /// Root of the provider's API, such as `https://api.example.com`. HTTPS only, without user, query and fragment.
    #[schemars(rename = "baseURL", length(min = 1), regex(pattern = "^https://.+"))]
    base_url: String,
    /// Accepts any certificate. It does not allow plain HTTP.
    #[schemars(extend("default" = false))]
    insecure_skip_verify: Option<bool>,
    /// The router's credential. None is sent if not set.
    auth: Option<ProviderAuth>,
    /// Headers that are sent with every request; not for secrets.
    headers: Option<BTreeMap<String, String>>,
}

#[derive(JsonSchema)]
enum ProviderType {
    #[schemars(rename = "OpenAI")]
    OpenAi,
    Anthropic,
}

#[derive(JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    extend("x-kubernetes-validations" = [{
        "rule": "!has(self.secretRef.optional) || !self.secretRef.optional",
        "message": "secretRef.optional must be false or unset",
    }])
)]
struct ProviderAuth {
    /// How the credential is sent: `Authorization: Bearer …` or the header for API keys. The provider's usual way if not
    /// set.
    scheme: Option<AuthScheme>,
    /// Where the credential is: a Secret in the provider's namespace with the label
    /// `networking.serving.volcano.sh/external-model-provider-credential: "true"`.
    secret_ref: SecretKey,
}

#[derive(JsonSchema)]
enum AuthScheme {
    Bearer,
    #[schemars(rename = "APIKey")]
    ApiKey,
}

#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
struct SecretKey {
    /// Name of the Secret.
    #[schemars(extend("default" = ""))]
    name: Option<String>,
    /// Key in the Secret.
    key: String,
    /// False or not set: the credential must exist.
    optional: Option<bool>,
}
