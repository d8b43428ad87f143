//! The objects of the cluster, their history, and what they look like on the wire.

use super::selector::Selector;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Resource, namespace and name.
pub(super) type Key = (String, String, String);

/// One change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    resource: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Change {
    /// The event that a watch with this selector sees, if any.
    pub(super) fn event(&self, resource: &str, selector: &Selector) -> Option<Value> {
        if self.resource != resource {
            return None;
        }
        let selected =
            |object: &Option<Value>| object.as_ref().is_some_and(|o| selector.selects(o));
        let (kind, object) = match (selected(&self.before), selected(&self.after)) {
            (false, false) => return None,
            (false, true) => ("ADDED", &self.after),
            (true, true) => ("MODIFIED", &self.after),
            (true, false) => ("DELETED", &self.before),
        };
        let mut object = object.clone()?;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        Some(json!({"type": kind, "object": object}))
    }
}

/// All objects, and what happened to them.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) all: BTreeMap<Key, Value>,
    pub(super) history: Vec<Change>,
    /// The newest version.
    pub(super) version: u64,
    /// Watches from before this version are told that it is gone.
    pub(super) oldest: u64,
}

impl Objects {
    /// Stores an object and fills in what an API server fills in.
    pub(super) fn put(&mut self, resource: &str, mut object: Value) {
        let key = key(resource, &object);
        let before = self.all.get(&key).cloned();
        self.version += 1;
        let meta = &mut object["metadata"];
        let old = before.as_ref().map(|b| &b["metadata"]);
        if meta["uid"].is_null() {
            let fresh = format!("11111111-2222-3333-4444-{:012}", self.version).into();
            meta["uid"] = old.map_or(fresh, |old| old["uid"].clone());
        }
        if meta["creationTimestamp"].is_null() {
            let now = format!(
                "2026-11-30T00:{:02}:{:02}Z",
                self.version / 60 % 60,
                self.version % 60
            );
            meta["creationTimestamp"] =
                old.map_or(now.into(), |old| old["creationTimestamp"].clone());
        }
        meta["resourceVersion"] = self.version.to_string().into();
        meta["managedFields"] = managed_fields();
        if resource != "pods" && meta["generation"].is_null() {
            let same = before.as_ref().is_some_and(|b| b["spec"] == object["spec"]);
            let generation = old.and_then(|old| old["generation"].as_i64()).unwrap_or(0);
            object["metadata"]["generation"] = (generation + i64::from(!same)).into();
        }
        if object["status"].is_null()
            && let Some(before) = &before
        {
            object["status"] = before["status"].clone();
        }
        self.all.insert(key, object.clone());
        self.remember(resource, before, Some(object));
    }

    /// Removes an object, with an event or, as when an event is lost, without.
    pub(super) fn delete(&mut self, resource: &str, namespace: &str, name: &str, silently: bool) {
        let key = (resource.into(), namespace.into(), name.into());
        let before = self.all.remove(&key).expect("the object is there");
        self.version += 1;
        if !silently {
            self.remember(resource, Some(before), None);
        }
    }

    fn remember(&mut self, resource: &str, before: Option<Value>, after: Option<Value>) {
        self.history.push(Change {
            version: self.version,
            resource: resource.into(),
            before,
            after,
        });
    }

    /// The objects of a resource that a selector selects.
    pub(super) fn list(&self, resource: &str, selector: &Selector) -> Vec<Value> {
        let of_resource = self.all.iter().filter(|((r, _, _), _)| r == resource);
        let mut items: Vec<_> = of_resource
            .map(|(_, object)| object)
            .filter(|object| selector.selects(object))
            .cloned()
            .collect();
        if resource == "pods" {
            // Go leaves kind and version out of the items of built-in lists.
            for item in &mut items {
                let fields = item.as_object_mut().expect("an object");
                fields.remove("kind");
                fields.remove("apiVersion");
            }
        }
        items
    }
}

fn key(resource: &str, object: &Value) -> Key {
    let text = |field: &str| {
        let text = object["metadata"][field].as_str();
        text.expect("objects have a namespace and a name")
            .to_owned()
    };
    (resource.into(), text("namespace"), text("name"))
}

fn managed_fields() -> Value {
    json!([{
        "manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1", "time": "2026-11-30T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"engine\"}": {".": {}}}}},
    }])
}

/// A pod that is Running and Ready, as an API server shows it.
#[must_use]
pub fn cluster_pod(name: &str, ip: &str, labels: &[(&str, &str)]) -> Value {
    let text = include_str!("pod.json");
    let mut pod: Value = serde_json::from_str(text).expect("the pod is JSON");
    pod["metadata"]["name"] = name.into();
    for (key, value) in labels {
        pod["metadata"]["labels"][*key] = (*value).into();
    }
    pod["status"]["podIP"] = ip.into();
    pod["status"]["podIPs"] = json!([{"ip": ip}]);
    pod
}

/// A custom resource `default/NAME` with this spec.
#[must_use]
pub fn custom(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "networking.serving.volcano.sh/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": spec.to_string()},
            "finalizers": null,
        },
        "spec": spec,
    })
}
