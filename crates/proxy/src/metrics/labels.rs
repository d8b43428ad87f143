//! Label sets. Every value is bounded: by the configuration, or by a fixed list.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A label value that is shared, so that a label set costs no copy of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// First, so that different texts are told apart by it.
    hash: u64,
    text: Arc<str>,
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self {
            hash: word(&text),
            text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(Arc::from(text))
    }
}

/// A request asks for about a dozen series, whose labels are some four texts each. The keyed hash of the standard map
/// would walk over all their bytes each time; it is given one word for a label set. The values are the operator's own
/// names, so nobody can make them collide.
fn word(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// One word of several, which depends on their order. The multiplier is that of Knuth's MMIX generator.
fn fold<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0, |all, word| {
        (all.rotate_left(23) ^ word).wrapping_mul(6_364_136_223_846_793_005)
    })
}

/// Hashes a label set as the one word that its method `word` makes of it.
macro_rules! hash_as_word {
    ($($labels:ty),+) => {
        $(impl Hash for $labels {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u64(self.word());
            }
        })+
    };
}

hash_as_word!(
    Text,
    Binding,
    ModelLabel,
    RequestLabels,
    DurationLabels,
    PhaseLabels,
    TokenLabels,
    PluginLabels,
    UpstreamLabels
);

impl Text {
    fn word(&self) -> u64 {
        self.hash
    }
}

impl EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(&self.text)
    }
}

/// Status codes as label values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

impl EncodeLabelValue for Status {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        write!(encoder, "{}", self.0)
    }
}

/// What kind of backend took a request.
pub type BackendType = &'static str;

/// Which backend a request was given to.
#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
pub struct Binding {
    /// `namespace/name` of the route.
    pub model_route: Text,
    /// `model_server`, or `unresolved`.
    pub backend_type: BackendType,
    /// `namespace/name` of the server.
    pub backend_name: Text,
    /// The model name that the pod was asked for.
    pub upstream_model: Text,
}

impl Binding {
    fn word(&self) -> u64 {
        fold([
            self.model_route.word(),
            word(self.backend_type),
            self.backend_name.word(),
            self.upstream_model.word(),
        ])
    }
}

impl Binding {
    /// A request that was never given to a backend.
    #[must_use]
    pub fn none() -> Self {
        let none = Text::from("none");
        Self {
            model_route: none.clone(),
            backend_type: "unresolved",
            backend_name: none.clone(),
            upstream_model: none,
        }
    }
}

/// `model` alone.
#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct ModelLabel {
    pub model: Text,
}

impl ModelLabel {
    fn word(&self) -> u64 {
        self.model.word()
    }
}

/// `stage` alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct StageLabel {
    pub stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct RequestLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
    pub error_type: &'static str,
    #[prometheus(flatten)]
    pub binding: Binding,
}

impl RequestLabels {
    fn word(&self) -> u64 {
        fold([
            self.model.word(),
            word(self.path),
            u64::from(self.status_code.0),
            word(self.error_type),
            self.binding.word(),
        ])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct DurationLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
    #[prometheus(flatten)]
    pub binding: Binding,
}

impl DurationLabels {
    fn word(&self) -> u64 {
        fold([
            self.model.word(),
            word(self.path),
            u64::from(self.status_code.0),
            self.binding.word(),
        ])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct PhaseLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
}

impl PhaseLabels {
    fn word(&self) -> u64 {
        fold([
            self.model.word(),
            word(self.path),
            u64::from(self.status_code.0),
        ])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct TokenLabels {
    pub model: Text,
    pub path: &'static str,
    pub token_type: &'static str,
    #[prometheus(flatten)]
    pub binding: Binding,
}

impl TokenLabels {
    fn word(&self) -> u64 {
        fold([
            self.model.word(),
            word(self.path),
            word(self.token_type),
            self.binding.word(),
        ])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct PluginLabels {
    pub model: Text,
    pub plugin: &'static str,
    pub r#type: &'static str,
}

impl PluginLabels {
    fn word(&self) -> u64 {
        fold([self.model.word(), word(self.plugin), word(self.r#type)])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct UpstreamLabels {
    pub model_server: Text,
    #[prometheus(flatten)]
    pub binding: Binding,
}

impl UpstreamLabels {
    fn word(&self) -> u64 {
        fold([self.model_server.word(), self.binding.word()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn binding(texts: [&str; 4]) -> Binding {
        let [route, kind, name, model] = texts;
        Binding {
            model_route: route.into(),
            backend_type: if kind == "unresolved" {
                "unresolved"
            } else {
                "model_server"
            },
            backend_name: name.into(),
            upstream_model: model.into(),
        }
    }

    /// Label sets that differ in one label, or have two of them exchanged, are different words: a word that left one out
    /// would be right and slow, which no other test would tell.
    #[test]
    fn every_label_counts_and_in_its_place() {
        let bindings = [
            binding(["a", "model_server", "b", "c"]),
            binding(["b", "model_server", "a", "c"]),
            binding(["a", "unresolved", "b", "c"]),
            binding(["a", "model_server", "c", "b"]),
            binding(["a", "model_server", "b", "d"]),
        ];
        let mut words = HashSet::new();
        let mut sets = 0;
        for binding in &bindings {
            for (model, path, status, kind) in [
                ("m", "/v1/completions", 200, "successful_request"),
                ("n", "/v1/completions", 200, "successful_request"),
                ("m", "/v1/responses", 200, "successful_request"),
                ("m", "/v1/completions", 503, "successful_request"),
                ("m", "/v1/completions", 200, "proxy"),
            ] {
                let labels = RequestLabels {
                    model: model.into(),
                    path,
                    status_code: Status(status),
                    error_type: kind,
                    binding: binding.clone(),
                };
                words.insert(labels.word());
                sets += 1;
                let tokens = TokenLabels {
                    model: model.into(),
                    path,
                    token_type: if kind == "proxy" { "input" } else { "output" },
                    binding: binding.clone(),
                };
                words.insert(tokens.word());
                let duration = DurationLabels {
                    model: model.into(),
                    path,
                    status_code: Status(status),
                    binding: binding.clone(),
                };
                words.insert(duration.word());
            }
        }
        // Tokens know no status, durations no kind of end.
        assert_eq!(words.len(), sets + bindings.len() * (4 + 4));
        let plugins: HashSet<_> = [
            ("a", "x", "y"),
            ("a", "y", "x"),
            ("b", "x", "y"),
            ("a", "x", "z"),
        ]
        .map(|(model, plugin, r#type)| {
            PluginLabels {
                model: model.into(),
                plugin,
                r#type,
            }
            .word()
        })
        .into();
        assert_eq!(plugins.len(), 4);
    }
}
