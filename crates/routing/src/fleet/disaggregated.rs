//! Prefill and decode pods of one server, told apart and put together by their labels.

use super::{Pod, PodId};
use crate::pd::Connector;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How prefill and decode pods are told apart and put together: `spec.workloadSelector.pdGroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdGroup {
    /// Key of the label whose value the pods of one group share.
    pub group_key: String,
    /// Labels of the prefill pods.
    pub prefill_labels: BTreeMap<String, String>,
    /// Labels of the decode pods.
    pub decode_labels: BTreeMap<String, String>,
}

/// What a pod does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PdRole {
    /// Computes the prompt.
    Prefill,
    /// Generates the answer.
    Decode,
}

impl PdRole {
    /// `prefill` or `decode`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

impl PdGroup {
    /// The role and the group of a pod with these labels. `None` when it has no role or no group. The labels of decode
    /// are tested first, and no labels select nothing.
    #[must_use]
    pub fn place<'a>(&self, labels: &'a BTreeMap<String, String>) -> Option<(PdRole, &'a str)> {
        let group = labels.get(&self.group_key)?;
        let role = if selects(&self.decode_labels, labels) {
            PdRole::Decode
        } else if selects(&self.prefill_labels, labels) {
            PdRole::Prefill
        } else {
            return None;
        };
        Some((role, group))
    }
}

fn selects(wanted: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    !wanted.is_empty() && wanted.iter().all(has)
}

/// The pods of a server that answers each request with two of them, a prefill and a decode pod of one group.
#[derive(Debug)]
pub struct Disaggregated {
    /// How the KV cache gets from prefill to decode.
    pub connector: Connector,
    decode: Vec<Arc<Pod>>,
    /// The decode pods of groups that have a prefill pod, with their group.
    paired: Vec<Arc<Pod>>,
    group_of: BTreeMap<PodId, usize>,
    groups: Vec<Vec<Arc<Pod>>>,
}

impl Disaggregated {
    /// Sorts these pods, which ascend by id, by role and group.
    pub(super) fn new(pods: &[Arc<Pod>], group: &PdGroup, connector: Connector) -> Self {
        let mut prefill: BTreeMap<&str, Vec<Arc<Pod>>> = BTreeMap::new();
        let mut decode = Vec::new();
        let mut names = Vec::new();
        for pod in pods {
            match group.place(&pod.labels) {
                Some((PdRole::Prefill, name)) => {
                    prefill.entry(name).or_default().push(Arc::clone(pod));
                }
                Some((PdRole::Decode, name)) => {
                    decode.push(Arc::clone(pod));
                    names.push(name);
                }
                None => {}
            }
        }
        let index: BTreeMap<&str, usize> = prefill.keys().copied().zip(0..).collect();
        let mut group_of = BTreeMap::new();
        let mut paired = Vec::new();
        for (pod, name) in decode.iter().zip(names) {
            if let Some(&group) = index.get(name) {
                paired.push(Arc::clone(pod));
                group_of.insert(pod.id, group);
            }
        }
        Self {
            connector,
            decode,
            paired,
            group_of,
            groups: prefill.into_values().collect(),
        }
    }

    /// All decode pods, ascending by id.
    #[must_use]
    pub fn decode_pods(&self) -> &[Arc<Pod>] {
        &self.decode
    }

    /// The decode pods whose group has a prefill pod, ascending by id.
    #[must_use]
    pub fn paired_pods(&self) -> &[Arc<Pod>] {
        &self.paired
    }

    /// The prefill pods of each group, ascending by id.
    #[must_use]
    pub fn groups(&self) -> &[Vec<Arc<Pod>>] {
        &self.groups
    }

    /// The group of a decode pod, as an index of [`Self::groups`]; `None` when there is no prefill pod for it.
    #[must_use]
    pub fn group_of(&self, decode: PodId) -> Option<usize> {
        self.group_of.get(&decode).copied()
    }

    /// The role of a pod.
    #[must_use]
    pub fn role_of(&self, pod: PodId) -> Option<PdRole> {
        let among = |pods: &[Arc<Pod>]| pods.binary_search_by_key(&pod, |p| p.id).is_ok();
        if among(&self.decode) {
            Some(PdRole::Decode)
        } else if self.groups.iter().any(|group| among(group)) {
            Some(PdRole::Prefill)
        } else {
            None
        }
    }
}
