//! A pod of a cluster: the few facts of it that are kept.

use routing::fleet::ObjectName;
use std::collections::BTreeMap;

/// A pod as the API server last told of it, without all that the router has no use for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `namespace/name`.
    pub name: ObjectName,
    /// `metadata.uid`: a pod that comes back under its name with another uid is another pod.
    pub uid: Box<str>,
    /// `status.podIP`; empty until it has one.
    pub ip: Box<str>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// It can take requests: Running, Ready, not terminating, and with an address.
    pub ready: bool,
}
