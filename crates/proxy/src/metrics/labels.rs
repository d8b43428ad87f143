//! Label sets. Every value is bounded: by the configuration, or by a fixed list.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A label value that is shared, so that a label set costs no copy of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Arc<str>);

/// A request asks for about a dozen series, whose labels are some four texts each. The keyed hash of the standard map
/// would walk over all their bytes; the values are the operator's own names, so nobody can make them collide.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(xxh3_64(self.0.as_bytes()));
    }
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl EncodeLabelValue for Text {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(&self.0)
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct ModelLabel {
    pub model: Text,
}

/// `stage` alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct StageLabel {
    pub stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct RequestLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
    pub error_type: &'static str,
    #[prometheus(flatten)]
    pub binding: Binding,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct DurationLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
    #[prometheus(flatten)]
    pub binding: Binding,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct PhaseLabels {
    pub model: Text,
    pub path: &'static str,
    pub status_code: Status,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct TokenLabels {
    pub model: Text,
    pub path: &'static str,
    pub token_type: &'static str,
    #[prometheus(flatten)]
    pub binding: Binding,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct PluginLabels {
    pub model: Text,
    pub plugin: &'static str,
    pub r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
#[allow(missing_docs, reason = "the fields are the labels")]
pub struct UpstreamLabels {
    pub model_server: Text,
    #[prometheus(flatten)]
    pub binding: Binding,
}
