//! Manifests and router configurations as text.

use crate::Pod;

const API: &str = "networking.serving.volcano.sh/v1alpha1";

/// A ModelServer `default/NAME` with these pods, called p0, p1 … in the order given. `extra` are further lines of its
/// spec, each indented by two.
#[must_use]
pub fn model_server(name: &str, pods: &[&Pod], extra: &str) -> String {
    let mut text = format!(
        "apiVersion: {API}\nkind: ModelServer\nmetadata:\n  name: {name}\nspec:\n  inferenceEngine: vLLM\n  \
         workloadSelector:\n    matchLabels: {{app: {name}}}\n  workloadPort: {{port: 8000}}\n{extra}"
    );
    text.push_str(if pods.is_empty() {
        "  endpoints: []\n"
    } else {
        "  endpoints:\n"
    });
    for (number, pod) in pods.iter().enumerate() {
        text.push_str(&format!(
            "  - {{name: p{number}, address: 127.0.0.1, port: {}}}\n",
            pod.port()
        ));
    }
    text
}

/// A ModelRoute `default/NAME` that sends a model to a ModelServer.
#[must_use]
pub fn model_route(name: &str, model: &str, server: &str) -> String {
    format!(
        "apiVersion: {API}\nkind: ModelRoute\nmetadata:\n  name: {name}\nspec:\n  modelName: {model:?}\n  rules:\n  \
         - name: all\n    targetModels:\n    - modelServerName: {server}\n"
    )
}

/// A routerConfiguration with these Score plugins and weights, the Filter least-request, and these arguments of
/// prefix-cache in flow style.
#[must_use]
pub fn scheduler(scores: &[(&str, i64)], prefix_args: &str) -> String {
    let scores: Vec<_> = scores
        .iter()
        .map(|(name, weight)| format!("{{name: {name}, weight: {weight}}}"))
        .collect();
    format!(
        "scheduler:\n  pluginConfig:\n  - name: prefix-cache\n    args: {prefix_args}\n  plugins:\n    Filter:\n      \
         enabled: [least-request]\n    Score:\n      enabled: [{}]\n",
        scores.join(", ")
    )
}
