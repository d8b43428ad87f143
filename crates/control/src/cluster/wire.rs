//! Objects as the API server sends them. Only what is needed is taken out of the JSON; the rest is skipped while reading.

pub(super) use crate::resources::Kind;
use crate::resources::{API_VERSION, DEFAULT_NAMESPACE, Pod};
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::core::NamespaceResourceScope;
use routing::fleet::ObjectName;
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A custom resource: its JSON, and what of its metadata the watch needs.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    meta: ObjectMeta,
    json: Value,
}

/// A custom resource as it is stored.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) name: ObjectName,
    pub(super) uid: String,
    /// `metadata.resourceVersion`.
    pub(super) version: String,
    /// Counts changes of the spec; 0 when it is not counted.
    pub(super) generation: i64,
    /// The whole object, without `metadata.managedFields`.
    pub(super) json: Value,
}

impl From<Custom> for Stored {
    fn from(Custom { meta, json }: Custom) -> Self {
        let namespace = meta.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        Self {
            name: ObjectName::new(namespace, meta.name.as_deref().unwrap_or_default()),
            uid: meta.uid.unwrap_or_default(),
            version: meta.resource_version.unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            json,
        }
    }
}

impl<'de> Deserialize<'de> for Custom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut json = Value::deserialize(deserializer)?;
        let mut meta = ObjectMeta::default();
        if let Some(fields) = json.get_mut("metadata").and_then(Value::as_object_mut) {
            fields.shift_remove("managedFields");
            let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
            meta.name = text("name");
            meta.namespace = text("namespace");
            meta.uid = text("uid");
            meta.resource_version = text("resourceVersion");
            meta.generation = fields.get("generation").and_then(Value::as_i64);
        }
        Ok(Self { meta, json })
    }
}

impl Resource for Custom {
    type DynamicType = Kind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &Kind) -> Cow<'_, str> {
        kind.as_str().into()
    }

    fn group(_: &Kind) -> Cow<'_, str> {
        API_VERSION.split('/').next().unwrap_or_default().into()
    }

    fn version(_: &Kind) -> Cow<'_, str> {
        API_VERSION.rsplit('/').next().unwrap_or_default().into()
    }

    fn plural(kind: &Kind) -> Cow<'_, str> {
        kind.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// A pod, cut down while it is read.
#[derive(Clone, Debug)]
pub(super) struct WatchedPod {
    meta: ObjectMeta,
    pod: Pod,
}

// A pod that the API server sends with other types than it should must not end the watch of all, so what is of use is read
// as any JSON.
#[derive(serde::Deserialize)]
struct PodJson {
    metadata: Option<MetaJson>,
    status: Option<StatusJson>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MetaJson {
    name: Value,
    namespace: Value,
    uid: Value,
    resource_version: Value,
    labels: Value,
    deletion_timestamp: Value,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct StatusJson {
    phase: Value,
    #[serde(rename = "podIP")]
    pod_ip: Value,
    conditions: Value,
}

/// The text, if it is one.
fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Labels; values that are no text are empty ones.
fn labels(value: Value) -> BTreeMap<String, String> {
    let Value::Object(fields) = value else {
        return BTreeMap::new();
    };
    let label = |(key, value)| (key, text(value).unwrap_or_default());
    fields.into_iter().map(label).collect()
}

fn is_ready(conditions: &Value) -> bool {
    let is_it = |c: &Value| c["type"] == "Ready" && c["status"] == "True";
    conditions
        .as_array()
        .is_some_and(|all| all.iter().any(is_it))
}

impl<'de> Deserialize<'de> for WatchedPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PodJson { metadata, status } = PodJson::deserialize(deserializer)?;
        let (metadata, status) = (metadata.unwrap_or_default(), status.unwrap_or_default());
        let (name, namespace) = (text(metadata.name), text(metadata.namespace));
        let ip = text(status.pod_ip).unwrap_or_default();
        let ready = metadata.deletion_timestamp.is_null()
            && status.phase == "Running"
            && !ip.is_empty()
            && name.is_some()
            && is_ready(&status.conditions);
        let pod = Pod {
            name: ObjectName::new(
                namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE),
                name.as_deref().unwrap_or_default(),
            ),
            uid: text(metadata.uid).unwrap_or_default().into(),
            ip: ip.into(),
            labels: labels(metadata.labels),
            ready,
        };
        let meta = ObjectMeta {
            name,
            namespace,
            resource_version: text(metadata.resource_version),
            ..ObjectMeta::default()
        };
        Ok(Self { meta, pod })
    }
}

impl Resource for WatchedPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

impl From<WatchedPod> for Pod {
    fn from(watched: WatchedPod) -> Self {
        watched.pod
    }
}
