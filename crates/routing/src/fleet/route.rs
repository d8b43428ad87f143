//! Which requests go to which servers.

use super::ObjectName;
use http::HeaderName;
use std::sync::Arc;

/// A ModelRoute.
#[derive(Debug)]
pub struct ModelRoute {
    /// `namespace/name`.
    pub name: ObjectName,
    /// The model that clients ask for.
    pub model_name: Option<Arc<str>>,
    /// Adapter names that clients may ask for.
    pub lora_adapters: Vec<Arc<str>>,
    /// Whether the route is tied to gateways. Such a route is skipped while the Gateway API is off.
    pub has_parent_refs: bool,
    /// Asked in order; the first that matches decides.
    pub rules: Vec<Rule>,
    /// The manifest's `spec`, for the debug page.
    pub spec: serde_json::Value,
}

/// One rule of a route.
#[derive(Debug)]
pub struct Rule {
    /// A label only.
    pub name: Option<String>,
    /// When it applies; `None` is always.
    pub matches: Option<RuleMatch>,
    /// Where to.
    pub targets: Vec<Target>,
}

/// Conditions of a rule; all must hold.
#[derive(Debug, Default)]
pub struct RuleMatch {
    /// Headers that must match. A header that is missing compares as the empty string.
    pub headers: Vec<(HeaderName, StringMatch)>,
    /// The URL's path.
    pub uri: Option<StringMatch>,
    /// The request's model, exactly.
    pub body_model: Option<String>,
}

/// How one string is compared.
#[derive(Debug)]
pub enum StringMatch {
    /// Equal.
    Exact(String),
    /// Starts with.
    Prefix(String),
    /// Matched somewhere, not anchored.
    Regex(regex::Regex),
    /// Never: the manifest holds a pattern that cannot be compiled.
    Invalid(String),
    /// Always: nothing is set.
    Any,
}

impl StringMatch {
    /// The comparison that a manifest asks for: `exact` goes before `prefix`, `prefix` before `regex`; with none of
    /// them everything matches.
    #[must_use]
    pub fn from_parts(exact: Option<&str>, prefix: Option<&str>, regex: Option<&str>) -> Self {
        match (exact, prefix, regex) {
            (Some(text), _, _) => Self::Exact(text.to_owned()),
            (None, Some(text), _) => Self::Prefix(text.to_owned()),
            (None, None, Some(text)) => super::re2::compile(text)
                .map_or_else(|_| Self::Invalid(text.to_owned()), Self::Regex),
            (None, None, None) => Self::Any,
        }
    }

    /// Whether the text compares well.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => text == wanted,
            Self::Prefix(wanted) => text.starts_with(wanted),
            Self::Regex(wanted) => wanted.is_match(text),
            Self::Invalid(_) => false,
            Self::Any => true,
        }
    }
}

/// One target of a rule.
#[derive(Debug)]
pub struct Target {
    /// Who.
    pub to: TargetRef,
    /// Relative share. Within a rule set on all targets or on none.
    pub weight: Option<u32>,
}

/// Who serves a rule's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetRef {
    /// A ModelServer.
    Server(ObjectName),
    /// An ExternalModelProvider.
    External(ObjectName),
}
