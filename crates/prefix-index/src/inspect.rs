//! A look inside, for tests, model checks and debugging. Nothing here is on the request path.

use crate::{PodId, PrefixIndex};

impl PrefixIndex {
    /// Whether a pod holds a block.
    #[must_use]
    pub fn holds(&self, pod: PodId, hash: u64) -> bool {
        self.state.read().postings.slot(hash, pod).is_some()
    }

    /// The block hashes that a pod holds, least recently used first.
    #[must_use]
    pub fn oldest_first(&self, pod: PodId) -> Vec<u64> {
        let state = self.state.read();
        state
            .pods
            .get(&pod)
            .map(|lru| lru.oldest_first().map(|(hash, _)| hash).collect())
            .unwrap_or_default()
    }

    /// Checks that lists, map and counts agree with each other and with the capacity.
    ///
    /// # Errors
    ///
    /// A sentence that says what does not agree.
    pub fn check_invariants(&self) -> Result<(), String> {
        let state = self.state.read();
        let mut listed = 0;
        for (pod, lru) in &state.pods {
            lru.check().map_err(|e| format!("{pod:?}: {e}"))?;
            if lru.len() > self.capacity {
                return Err(format!(
                    "{pod:?} holds {} of at most {} entries",
                    lru.len(),
                    self.capacity
                ));
            }
            listed += lru.len();
            for (hash, slot) in lru.oldest_first() {
                if state.postings.slot(hash, *pod) != Some(slot) {
                    return Err(format!(
                        "{pod:?} lists block {hash:x} at {slot}, the map does not"
                    ));
                }
            }
        }
        state.postings.check()?;
        let mapped = state.postings.count();
        if listed == mapped && listed == state.entries {
            Ok(())
        } else {
            Err(format!(
                "{listed} entries listed, {mapped} mapped, {} counted",
                state.entries
            ))
        }
    }
}
