//! Which pods of a cluster a ModelServer selects.

use crate::resources::{ModelServer, Pod};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The pods of a cluster by those labels that some ModelServer asks for, so that selecting does not walk through all
/// pods once for every server.
#[derive(Debug)]
pub(crate) struct Selection<'a> {
    /// Namespace, key and value to the pods that carry it.
    by_label: HashMap<(&'a str, &'a str, &'a str), Vec<&'a Pod>>,
}

impl<'a> Selection<'a> {
    /// Sorts these pods for these servers.
    pub(crate) fn new(servers: &'a [Arc<ModelServer>], pods: &'a [Arc<Pod>]) -> Self {
        let mut asked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for server in servers {
            asked
                .entry(server.meta.name.namespace())
                .or_default()
                .extend(server.match_labels.keys().map(String::as_str));
        }
        let mut by_label: HashMap<_, Vec<&'a Pod>> = HashMap::new();
        for pod in pods {
            let namespace = pod.name.namespace();
            for key in asked.get(namespace).into_iter().flatten() {
                if let Some(value) = pod.labels.get(*key) {
                    by_label
                        .entry((namespace, *key, value.as_str()))
                        .or_default()
                        .push(pod);
                }
            }
        }
        Self { by_label }
    }

    /// The pods in the server's namespace that carry all of its labels, in the order they were given in.
    pub(crate) fn of(&self, server: &'a ModelServer) -> impl Iterator<Item = &'a Pod> {
        let namespace = server.meta.name.namespace();
        let with = |(key, value): (&'a String, &'a String)| {
            self.by_label
                .get(&(namespace, key.as_str(), value.as_str()))
                .map_or(&[][..], Vec::as_slice)
        };
        // The rarest label first: a label that every pod carries tells nothing.
        let rarest = server
            .match_labels
            .iter()
            .map(with)
            .min_by_key(|pods| pods.len())
            .unwrap_or(&[]);
        let all = |pod: &&Pod| {
            server
                .match_labels
                .iter()
                .all(|(key, value)| pod.labels.get(key) == Some(value))
        };
        rarest
            .iter()
            .copied()
            .filter(all)
            .collect::<Vec<_>>()
            .into_iter()
    }
}
