//! `metadata`, the same in every kind.

use super::DEFAULT_NAMESPACE;
use crate::fields::{Fields, Reader};
use crate::names;
use crate::problem::{Problem, Severity};
use jiff::Timestamp;
use routing::fleet::ObjectName;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where something is written. Displayed as `file:line`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1; 0 for an object of a cluster.
    pub line: u32,
}

impl Place {
    pub(crate) fn problem(&self, severity: Severity, field: &str, message: String) -> Problem {
        Problem {
            file: Arc::clone(&self.file),
            line: (self.line > 0).then_some(self.line),
            field: field.to_owned(),
            message,
            severity,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Who an object is.
#[derive(Clone, Debug)]
pub struct Meta {
    /// `namespace/name`.
    pub name: ObjectName,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// When the cluster created it; manifests written by hand have none.
    pub created: Option<Timestamp>,
    /// The cluster's version of it; empty in manifests written by hand.
    pub resource_version: String,
    /// Where its name is written.
    pub place: Place,
}

/// Fields that the API server fills in; a manifest taken from a cluster has them.
const OF_THE_CLUSTER: &[&str] = &[
    "annotations",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "selfLink",
    "uid",
];

/// Reads the field `metadata`.
pub(super) fn read(object: &mut Fields<'_>) -> Option<Meta> {
    let at = object.required("metadata")?;
    let mut fields = at.object()?;
    let name = fields.required("name");
    let namespace = fields.optional("namespace");
    let labels = fields
        .optional("labels")
        .map(|labels| read_labels(&labels, ""))
        .unwrap_or_default();
    let created = fields
        .optional("creationTimestamp")
        .and_then(|at| read_timestamp(&at));
    let version = fields
        .optional("resourceVersion")
        .and_then(|at| at.string())
        .unwrap_or_default();
    fields.skip(OF_THE_CLUSTER);
    fields.finish();

    let name = name?;
    let place = Place {
        file: Arc::clone(name.sink().file()),
        line: name.line(),
    };
    let name = checked(&name, names::check_object_name)?;
    let namespace = match namespace {
        Some(namespace) => checked(&namespace, names::check_namespace)?,
        None => DEFAULT_NAMESPACE,
    };
    let name = ObjectName::new(namespace, name);
    Some(Meta {
        name,
        labels,
        created,
        resource_version: version.to_owned(),
        place,
    })
}

/// A string that passes a check; otherwise the check's text is reported.
pub(super) fn checked<'a>(at: &Reader<'a>, check: names::Check) -> Option<&'a str> {
    let text = at.string()?;
    check(text).map_err(|message| at.error(message)).ok()?;
    Some(text)
}

/// Labels; keys and values of the wrong syntax are reported, with `context` in front of the reason.
pub(super) fn read_labels(at: &Reader<'_>, context: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, value) in at.entries().unwrap_or_default() {
        if !names::is_label_key(key) {
            value.invalid(
                format_args!("{key:?}"),
                &format!("{context}invalid label key"),
            );
        }
        let Some(text) = value.string() else { continue };
        if !names::is_label_value(text) {
            value.invalid(
                format_args!("{text:?}"),
                &format!("{context}invalid label value"),
            );
        }
        labels.insert(key.to_owned(), text.to_owned());
    }
    labels
}

fn read_timestamp(at: &Reader<'_>) -> Option<Timestamp> {
    let text = at.string()?;
    text.parse()
        .map_err(|_| at.error(format!("Invalid value: {text:?}: must be an RFC 3339 time")))
        .ok()
}
