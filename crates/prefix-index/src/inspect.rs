//! A look inside, for tests, model checks and debugging. Nothing here is on the request path.

use crate::{PodId, PrefixIndex};

impl PrefixIndex {
    /// The block hashes that a pod holds, least recently used first.
    #[must_use]
    pub fn oldest_first(&self, pod: PodId) -> Vec<u64> {
        let state = self.state.read();
        let held = |run: u32| {
            let run = &state.tree.runs[run];
            let held = run.held(pod) as usize;
            run.hashes.iter().take(held).rev().copied()
        };
        state.pods.get(&pod).map_or_else(Vec::new, |lru| {
            lru.oldest_first().flat_map(|(run, _)| held(run)).collect()
        })
    }

    /// Checks that lists, map and counts agree with each other and with the capacity.
    ///
    /// # Errors
    ///
    /// A sentence that says what does not agree.
    pub fn check_invariants(&self) -> Result<(), String> {
        let state = self.state.read();
        state.tree.check()?;
        let (mut listed, mut blocks) = (0, 0);
        for (pod, lru) in &state.pods {
            lru.check().map_err(|e| format!("{pod:?}: {e}"))?;
            if lru.blocks > self.capacity {
                return Err(format!(
                    "{pod:?} holds {} of at most {} entries",
                    lru.blocks, self.capacity
                ));
            }
            for (number, slot) in lru.oldest_first() {
                let run = &state.tree.runs[number];
                match run.find(*pod).map(|at| run.holders[at]) {
                    Ok(holder) if holder.slot == slot => blocks += holder.held as usize,
                    _ => return Err(format!("{pod:?} lists run {number} at {slot}: {run:?}")),
                }
                listed += 1;
            }
        }
        let runs = state.tree.runs.iter();
        let held: usize = runs.map(|(_, run)| run.holders.len()).sum();
        let counted: usize = state.pods.values().map(|lru| lru.blocks).sum();
        if listed == held && blocks == counted && blocks == state.entries {
            Ok(())
        } else {
            Err(format!(
                "{listed} runs listed, {held} held; {blocks} entries, {counted} and {} counted",
                state.entries
            ))
        }
    }
}
