//! All that is known of the cluster, and the objects that are in force.

use super::entry::{Change, Entry, Good};
use super::wire::{Kind, Stored};
use crate::problem::Problem;
use crate::resources::{self, Objects, Pod};
use routing::fleet::ObjectName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Custom resources and pods.
#[derive(Debug, Default)]
pub(super) struct Store {
    entries: BTreeMap<(Kind, ObjectName), Entry>,
    pods: BTreeMap<ObjectName, Arc<Pod>>,
    /// Warnings about targets that do not exist, as the log knows them.
    targets: Vec<Problem>,
}

impl Store {
    /// Takes the list of all objects of a kind. What that can change.
    pub(super) fn list(&mut self, kind: Kind, listed: Vec<Stored>) -> Change {
        let names: BTreeSet<_> = listed.iter().map(|object| object.name.clone()).collect();
        let before = self.entries.len();
        self.entries
            .retain(|(k, name), _| *k != kind || names.contains(name));
        let gone = Change::objects(self.entries.len() < before);
        listed
            .into_iter()
            .fold(gone, |change, object| change.max(self.apply(kind, object)))
    }

    /// Takes an object that is new or changed. What that can change.
    pub(super) fn apply(&mut self, kind: Kind, object: Stored) -> Change {
        let key = (kind, object.name.clone());
        let before = self.entries.remove(&key);
        let (entry, change) = Entry::read(kind, object, before);
        self.entries.insert(key, entry);
        change
    }

    /// Drops an object. Whether it was there.
    pub(super) fn delete(&mut self, kind: Kind, object: &Stored) -> bool {
        let key = (kind, object.name.clone());
        let same = self
            .entries
            .get(&key)
            .is_some_and(|entry| entry.uid == object.uid);
        same && self.entries.remove(&key).is_some()
    }

    /// Takes the list of all pods. Whether anything changed.
    pub(super) fn list_pods(&mut self, listed: Vec<Pod>) -> bool {
        let mut before = std::mem::take(&mut self.pods);
        let mut changed = before.len() != listed.len();
        for pod in listed {
            // What did not change is not kept twice.
            let pod = match before.remove(&pod.name) {
                Some(known) if *known == pod => known,
                _ => {
                    changed = true;
                    Arc::new(pod)
                }
            };
            self.pods.insert(pod.name.clone(), pod);
        }
        changed
    }

    /// Takes a pod that is new or changed. Whether anything changed that is kept of it.
    pub(super) fn apply_pod(&mut self, pod: Pod) -> bool {
        if self.pods.get(&pod.name).is_some_and(|known| **known == pod) {
            return false;
        }
        self.pods.insert(pod.name.clone(), Arc::new(pod));
        true
    }

    /// Drops a pod. Whether it was there.
    pub(super) fn delete_pod(&mut self, pod: &Pod) -> bool {
        let same = self
            .pods
            .get(&pod.name)
            .is_some_and(|known| known.uid == pod.uid);
        same && self.pods.remove(&pod.name).is_some()
    }

    /// Everything that is stored, by kind and name.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Kind, &ObjectName, &Entry)> {
        self.entries.iter().map(|((k, name), e)| (*k, name, e))
    }

    /// The objects in force, and all pods.
    pub(super) fn objects(&self) -> Objects {
        let mut objects = Objects {
            pods: self.pods.values().map(Arc::clone).collect(),
            ..Objects::default()
        };
        for good in self.entries.values().filter_map(|e| e.good.as_ref()) {
            match good {
                Good::Server(server) => objects.servers.push(Arc::clone(server)),
                Good::Route(route) => objects.routes.push(Arc::clone(route)),
                Good::Provider(provider) => objects.providers.push(Arc::clone(provider)),
            }
        }
        objects
    }

    /// Logs each target that does not exist, once.
    pub(super) fn check_targets(&mut self, objects: &Objects) {
        let found = resources::check_targets(objects);
        let news = found.iter().filter(|p| !self.targets.contains(p));
        news.for_each(Problem::log);
        self.targets = found;
    }
}
