//! What the status of an object is to say, and what it says.

use super::entry::{Entry, Good};
use super::store::Store;
use super::wire::Kind;
use crate::resources::{API_VERSION, Objects};
use crate::selection::Selection;
use routing::fleet::ObjectName;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longest message of a condition, in characters; the API allows 32,768 bytes.
const MAX_MESSAGE: usize = 2048;

const INVALID: &str = "ConfigurationInvalid";

/// Statuses to be written, by kind and name.
pub(super) type Table = BTreeMap<(Kind, ObjectName), Row>;

/// What an object's status is to say and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) wanted: Wanted,
    pub(super) seen: Seen,
}

/// What a status is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    uid: String,
    generation: i64,
    /// Pods matched and pods ready, of a ModelServer.
    replicas: Option<(usize, usize)>,
    ready: bool,
    reason: &'static str,
    message: String,
}

/// What a status says of what the router writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    generation: Option<i64>,
    matched: Option<u64>,
    ready_replicas: Option<u64>,
    status: String,
    reason: String,
    message: String,
    /// `lastTransitionTime` of the condition Ready.
    since: Option<String>,
}

impl Seen {
    /// Reads the status of an object.
    pub(super) fn read(object: &Value) -> Self {
        let status = &object["status"];
        let conditions = status["conditions"].as_array();
        let ready = conditions
            .and_then(|all| all.iter().find(|c| c["type"] == "Ready"))
            .unwrap_or(&Value::Null);
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        Self {
            generation: status["observedGeneration"].as_i64(),
            matched: status["matchedReplicas"].as_u64(),
            ready_replicas: status["readyReplicas"].as_u64(),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            since: ready["lastTransitionTime"].as_str().map(str::to_owned),
        }
    }
}

/// The statuses of all objects that are to have one: every ModelServer; other kinds only when they are not valid, or
/// when their status still says so.
pub(super) fn table(store: &Store, objects: &Objects) -> Table {
    let selection = Selection::new(&objects.servers, &objects.pods);
    let row = |(kind, name, entry): (Kind, &ObjectName, &Entry)| {
        let replicas = match &entry.good {
            Some(Good::Server(server)) => {
                let pods = || selection.of(server);
                Some((pods().count(), pods().filter(|p| p.ready).count()))
            }
            _ => (kind == Kind::ModelServer).then_some((0, 0)),
        };
        let wanted = Wanted::of(entry, replicas);
        let worth = kind == Kind::ModelServer || !wanted.ready || entry.seen.reason == INVALID;
        let row = Row {
            wanted,
            seen: entry.seen.clone(),
        };
        worth.then(|| ((kind, name.clone()), row))
    };
    store.entries().filter_map(row).collect()
}

impl Wanted {
    fn of(entry: &Entry, replicas: Option<(usize, usize)>) -> Self {
        let (ready, reason, message) = match replicas {
            _ if !entry.errors.is_empty() => (false, INVALID, cut(&entry.errors)),
            None => (true, "Valid", "all rules are kept".to_owned()),
            Some((0, _)) => (
                false,
                "NoReadyPods",
                "no pod has the labels of spec.workloadSelector.matchLabels".to_owned(),
            ),
            Some((matched, 0)) => (
                false,
                "NoReadyPods",
                format!("none of {matched} pods is ready"),
            ),
            Some((matched, ready)) => (
                true,
                "PodsReady",
                format!("{ready} of {matched} pods are ready"),
            ),
        };
        Self {
            uid: entry.uid.clone(),
            generation: entry.generation,
            replicas,
            ready,
            reason,
            message,
        }
    }

    fn status(&self) -> &'static str {
        if self.ready { "True" } else { "False" }
    }

    /// Whether a status says all of it already.
    pub(super) fn is(&self, seen: &Seen) -> bool {
        let count = |n: usize| u64::try_from(n).ok();
        seen.generation == Some(self.generation)
            && self.replicas.is_none_or(|(matched, ready)| {
                seen.matched == count(matched) && seen.ready_replicas == count(ready)
            })
            && seen.status == self.status()
            && seen.reason == self.reason
            && seen.message == self.message
    }

    /// The body of a server-side apply. `now` is the time of a transition, which there is none of while the condition
    /// stays what it is.
    pub(super) fn body(&self, kind: Kind, name: &ObjectName, seen: &Seen, now: &str) -> Value {
        let kept = seen
            .since
            .as_deref()
            .filter(|_| seen.status == self.status());
        let condition = json!({
            "type": "Ready",
            "status": self.status(),
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": self.generation,
            "lastTransitionTime": kept.unwrap_or(now),
        });
        let mut status = json!({
            "observedGeneration": self.generation,
            "conditions": [condition],
        });
        if let Some((matched, ready)) = self.replicas {
            status["matchedReplicas"] = matched.into();
            status["readyReplicas"] = ready.into();
        }
        json!({
            "apiVersion": API_VERSION,
            "kind": kind.as_str(),
            // With its uid, or what came back under the name of a deleted object could get the status of that.
            "metadata": {"name": name.name(), "namespace": name.namespace(), "uid": self.uid},
            "status": status,
        })
    }
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
