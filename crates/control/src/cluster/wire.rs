//! Objects as the API server sends them. Only what is needed is taken out of the JSON; the rest is skipped while reading.

pub(super) use crate::resources::Kind;
use crate::resources::{API_VERSION, DEFAULT_NAMESPACE, Pod};
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::DynamicResourceScope;
use kube::core::NamespaceResourceScope;
use routing::fleet::ObjectName;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
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

#[derive(serde::Deserialize)]
struct PodJson {
    metadata: MetaJson,
    status: Option<StatusJson>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaJson {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<Box<str>>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, serde::Deserialize)]
struct StatusJson {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
    conditions: Option<Vec<ConditionJson>>,
}

#[derive(serde::Deserialize)]
struct ConditionJson {
    r#type: String,
    status: String,
}

impl<'de> Deserialize<'de> for WatchedPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PodJson { metadata, status } = PodJson::deserialize(deserializer)?;
        let status = status.unwrap_or_default();
        let ip = status.pod_ip.unwrap_or_default();
        let condition = |c: &ConditionJson| c.r#type == "Ready" && c.status == "True";
        let ready = metadata.deletion_timestamp.is_none()
            && status.phase.as_deref() == Some("Running")
            && !ip.is_empty()
            && status.conditions.unwrap_or_default().iter().any(condition);
        let namespace = metadata.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let pod = Pod {
            name: ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default()),
            uid: metadata.uid.unwrap_or_default(),
            ip,
            labels: metadata.labels.unwrap_or_default(),
            ready,
        };
        let meta = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
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
