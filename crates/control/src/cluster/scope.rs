//! Which pods are asked for: as few as the ModelServers allow.

use crate::resources::ModelServer;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// Longest selector, in bytes. It is a part of the URL, and proxies before an API server allow as little as 8 KiB.
const MAX_SELECTOR: usize = 4096;

/// Pods that have ended are not asked for, whatever their labels: they never serve again.
pub(super) const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Where and with which labels there can be pods of the ModelServers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodScope {
    /// The only namespace with ModelServers; `None` if there are several.
    pub(super) namespace: Option<String>,
    /// A label selector that every wanted pod fulfils; `None` if the ModelServers have no label key in common.
    pub(super) selector: Option<String>,
}

impl PodScope {
    /// The scope for these servers; `None` without any, when there is no pod to ask for.
    ///
    /// For each label key that all servers ask for, a pod must have one of the values that they ask for.
    pub(super) fn of<S: Borrow<ModelServer>>(servers: &[S]) -> Option<Self> {
        let namespaces: BTreeSet<_> = servers
            .iter()
            .map(|s| s.borrow().meta.name.namespace())
            .collect();
        let namespace = match namespaces.len() {
            0 => return None,
            1 => namespaces.first().map(|&n| n.to_owned()),
            _ => None,
        };
        let mut values: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for (key, value) in servers.iter().flat_map(|s| &s.borrow().match_labels) {
            let (count, values) = values.entry(key).or_default();
            *count += 1;
            values.insert(value);
        }
        let mut selector = String::new();
        for (key, (count, values)) in values {
            if count < servers.len() {
                continue;
            }
            let values: Vec<_> = values.into_iter().collect();
            let one = match values.as_slice() {
                [value] => format!("{key}={value}"),
                values => format!("{key} in ({})", values.join(",")),
            };
            // A key alone says less, but nothing wrong.
            let one = if selector.len() + one.len() > MAX_SELECTOR {
                key.to_owned()
            } else {
                one
            };
            if !selector.is_empty() {
                selector.push(',');
            }
            selector.push_str(&one);
        }
        Some(Self {
            namespace,
            selector: Some(selector).filter(|s| !s.is_empty()),
        })
    }
}
