//! One custom resource: what is stored, and what of it is in force.

use super::status::Seen;
use super::wire::{Kind, Stored};
use crate::node::Node;
use crate::problem::{Problem, Sink};
use crate::resources::{
    self, API_VERSION, ExternalModelProvider, ModelRoute, ModelServer, Objects,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// A stored object, and what came of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) uid: String,
    /// Of the stored version.
    pub(super) generation: i64,
    /// What its status says.
    pub(super) seen: Seen,
    /// The newest version that keeps all rules; not the stored one if that has errors.
    pub(super) good: Option<Good>,
    /// Why the stored version is not in force; empty if it is.
    pub(super) errors: String,
    version: String,
    /// Warnings and notes about it.
    remarks: Vec<Problem>,
}

/// What a new version of an object, or the lack of it, can have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// What its status says.
    Status,
    /// What is in force.
    Objects,
}

impl Change {
    /// What is in force has changed, or nothing has.
    pub(super) fn objects(changed: bool) -> Self {
        if changed {
            Self::Objects
        } else {
            Self::Nothing
        }
    }
}

/// An object that keeps all rules.
#[derive(Clone, Debug)]
pub(super) enum Good {
    Server(Arc<ModelServer>),
    Route(Arc<ModelRoute>),
    Provider(Arc<ExternalModelProvider>),
}

impl Entry {
    /// Reads what is stored now, logs what is worth saying about it, and tells what can have changed.
    pub(super) fn read(kind: Kind, object: Stored, before: Option<Self>) -> (Self, Change) {
        // What comes back under the name of a deleted object has no earlier version.
        let before = before.filter(|before| before.uid == object.uid);
        let (version, generation) = (object.version, object.generation);
        let before = match before {
            Some(same) if same.version == version && !version.is_empty() => {
                return (same, Change::Nothing);
            }
            before => before,
        };
        let seen = Seen::read(&object.json);
        let name = format!("{} {}", kind.as_str(), object.name);
        let (good, problems) = check(kind, &name, object.json);
        let (errors, remarks): (Vec<_>, Vec<_>) = problems.into_iter().partition(Problem::is_error);
        let mut entry = Self {
            uid: object.uid,
            generation,
            seen,
            good,
            errors: String::new(),
            version,
            remarks,
        };
        if !errors.is_empty() {
            entry.good = before.as_ref().and_then(|b| b.good.clone());
            entry.errors = joined(&errors, entry.good.is_some());
        }
        entry.report(&name, before.as_ref());
        // Without a new generation only the metadata or the status is new, such as the router's own writing. Versions
        // take part in the order of routes.
        let unchanged = |before: &Self| {
            generation != 0
                && before.generation == generation
                && before.errors == entry.errors
                && kind != Kind::ModelRoute
        };
        let change = match before {
            Some(before) if unchanged(&before) && before.seen == entry.seen => Change::Nothing,
            Some(before) if unchanged(&before) => Change::Status,
            _ => Change::Objects,
        };
        (entry, change)
    }

    fn report(&self, name: &str, before: Option<&Self>) {
        let said = before.map_or("", |b| &b.errors);
        if self.errors.is_empty() {
            if !said.is_empty() {
                tracing::info!("{name} is valid again");
            }
        } else if self.errors != said {
            tracing::error!("{name} is not valid: {}", self.errors);
        }
        let known = before.map_or(&[][..], |b| &b.remarks);
        let news = self.remarks.iter().filter(|r| !known.contains(r));
        news.for_each(Problem::log);
    }
}

/// Holds an object to the rules that manifests are held to.
fn check(kind: Kind, name: &str, mut json: Value) -> (Option<Good>, Vec<Problem>) {
    if let Some(fields) = json.as_object_mut() {
        // API servers may leave them out of the items of a list.
        for (field, value) in [("apiVersion", API_VERSION), ("kind", kind.as_str())] {
            fields.entry(field).or_insert_with(|| value.into());
        }
    }
    let sink = Sink::of_object(name.into());
    let mut objects = Objects::default();
    resources::read_document(&Node::from_json(json), &sink, &mut objects);
    let good = match kind {
        Kind::ModelServer => objects.servers.pop().map(Good::Server),
        Kind::ModelRoute => objects.routes.pop().map(Good::Route),
        Kind::ExternalModelProvider => objects.providers.pop().map(Good::Provider),
    };
    (good, sink.into_problems())
}

/// All errors in one line, and what is in force instead.
fn joined(errors: &[Problem], earlier: bool) -> String {
    let mut text = String::new();
    for Problem { field, message, .. } in errors {
        // Writing to a string does not fail.
        let _ = match field.as_str() {
            "" => write!(text, "{message}; "),
            field => write!(text, "{field}: {message}; "),
        };
    }
    text.push_str(if earlier {
        "the last valid version stays in force"
    } else {
        "it is left out"
    });
    text
}
