//! The index as one would write it first: slow, and easy to believe.
#![allow(dead_code, reason = "every test file uses another part")]

use prefix_index::{Chain, Hashes, PodId, Recorded};
use std::collections::BTreeMap;

/// Hashes of a text in blocks of one byte, so that short texts share prefixes.
pub(crate) fn hashes(text: &str) -> Hashes {
    let mut chain = Chain::new("model", 1, usize::MAX);
    let _ = chain.push(text.as_bytes());
    chain.finish()
}

/// Per pod, block hashes from least to most recently used.
#[derive(Default)]
pub(crate) struct Oracle {
    capacity: usize,
    pods: BTreeMap<PodId, Vec<u64>>,
}

impl Oracle {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            pods: BTreeMap::new(),
        }
    }

    pub(crate) fn admit(&mut self, pod: PodId) {
        self.pods.entry(pod).or_default();
    }

    pub(crate) fn forget(&mut self, pod: PodId) -> usize {
        self.pods.remove(&pod).map_or(0, |held| held.len())
    }

    pub(crate) fn len(&self) -> usize {
        self.pods.values().map(Vec::len).sum()
    }

    pub(crate) fn oldest_first(&self, pod: PodId) -> &[u64] {
        self.pods.get(&pod).map_or(&[], Vec::as_slice)
    }

    /// A plain LRU cache that is fed the blocks one by one, last block first.
    pub(crate) fn record(&mut self, pod: PodId, hashes: &[u64]) -> Recorded {
        let Some(held) = self.pods.get_mut(&pod) else {
            return Recorded::default();
        };
        let before = held.len();
        let refreshed = hashes.iter().filter(|h| held.contains(h)).count();
        for &hash in hashes.iter().rev() {
            held.retain(|&h| h != hash);
            held.push(hash);
            if held.len() > self.capacity {
                held.remove(0);
            }
        }
        let added = hashes.len() - refreshed;
        Recorded {
            added,
            refreshed,
            evicted: before + added - held.len(),
        }
    }

    /// The longest match of every candidate, without the limit of k.
    pub(crate) fn all_matches(&self, hashes: &[u64], pods: &[PodId]) -> Vec<u32> {
        let holds = |pod: &PodId, hash: &u64| self.oldest_first(*pod).contains(hash);
        let longest = |pod| {
            hashes
                .iter()
                .rposition(|hash| holds(pod, hash))
                .map_or(0, |n| n as u32 + 1)
        };
        pods.iter().map(longest).collect()
    }

    /// Fails unless `out` is one of the answers that the rule allows: go from the last block to the first, a pod's first
    /// hit is its longest match, stop when k pods are found.
    pub(crate) fn judge(&self, hashes: &[u64], pods: &[PodId], k: usize, out: &[u32], best: u32) {
        let all = self.all_matches(hashes, pods);
        let mut walked = Vec::new();
        for n in (1..=hashes.len() as u32).rev() {
            let here = all
                .iter()
                .filter(|&&m| m == n)
                .count()
                .min(k - walked.len());
            walked.extend(std::iter::repeat_n(n, here));
        }
        let mut given: Vec<u32> = out.iter().copied().filter(|&m| m > 0).collect();
        given.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(
            given, walked,
            "lengths of the winners; all matches are {all:?}"
        );
        for (i, &m) in out.iter().enumerate() {
            assert!(m == 0 || m == all[i], "pod {i} got {m}, holds {}", all[i]);
        }
        assert_eq!(best, walked.first().copied().unwrap_or(0));
    }
}
