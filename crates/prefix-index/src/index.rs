//! The index: what each pod holds, and who holds a block.

use crate::PodId;
use crate::lookup;
use crate::lru::Lru;
use crate::tree::{Holder, ROOT, Step, Tree};
use parking_lot::{RwLock, RwLockWriteGuard};
use std::collections::HashMap;

/// Most entries of one pod, and most blocks of one record: slots are 32 bits, and the two meet in one list for a moment.
const MAX_ENTRIES: usize = i32::MAX as usize;

/// Entries that are forgotten before waiting requests may pass; at most some 50 µs, if each is a run of its own.
const FORGET_STEP: usize = 512;

/// What a record did, in entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Blocks that the pod did not have.
    pub added: usize,
    /// Blocks that the pod had; they are now its most recently used ones.
    pub refreshed: usize,
    /// Least recently used entries that were dropped because the pod's list was full.
    pub evicted: usize,
}

/// Which pods were recently sent which blocks. See the [crate documentation](crate) for invariants and locking.
///
/// An entry is one block for one pod. It has no memory of its own: 8 bytes for each block, whoever holds it, about 70
/// bytes for each run of blocks, and some 30 for each further pod that holds a part of a run.
#[derive(Debug)]
pub struct PrefixIndex {
    pub(crate) capacity: usize,
    pub(crate) state: RwLock<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// What each pod holds.
    pub(crate) pods: HashMap<PodId, Lru>,
    pub(crate) tree: Tree,
    pub(crate) entries: usize,
    /// Entries that were dropped because a pod's list was full, of pods that are gone, too.
    pub(crate) evicted: u64,
}

impl PrefixIndex {
    /// An empty index whose pods hold at most `capacity_per_pod` entries each (at most 2³¹ − 1). Nothing is allocated
    /// in advance.
    #[must_use]
    pub fn new(capacity_per_pod: usize) -> Self {
        let state = State {
            pods: HashMap::new(),
            tree: Tree::new(),
            entries: 0,
            evicted: 0,
        };
        Self {
            capacity: capacity_per_pod.min(MAX_ENTRIES),
            state: RwLock::new(state),
        }
    }

    /// Lets a pod hold entries. Nothing happens if it may already, or while it is being forgotten: an id is never reused.
    pub fn admit(&self, pod: PodId) {
        self.state.write().pods.entry(pod).or_insert_with(Lru::new);
    }

    /// Removes a pod and all its entries, and returns how many there were. Later records for it do nothing.
    ///
    /// Oldest entries go first, so the pod's entries stay prefix-closed for the look-ups in between.
    pub fn forget(&self, pod: PodId) -> usize {
        let mut state = self.state.write();
        let mut removed = 0;
        loop {
            let step = state.drop_oldest(pod, FORGET_STEP);
            removed += step;
            if step < FORGET_STEP {
                state.pods.remove(&pod);
                return removed;
            }
            RwLockWriteGuard::bump(&mut state);
        }
    }

    /// Notes that a pod was sent a prompt: `hashes` are those of one chain from its first block on.
    ///
    /// The first block ends as the most recently used one. Entries beyond the capacity are dropped after all blocks
    /// are in, so no block is dropped that the same record would refresh. Nothing happens for a pod that was not
    /// admitted or was forgotten.
    pub fn record(&self, pod: PodId, hashes: &[u64]) -> Recorded {
        self.state
            .write()
            .record(pod, &hashes[..hashes.len().min(MAX_ENTRIES)], self.capacity)
    }

    /// How much of a prompt the candidates hold: sets `out[i]` to the number of leading blocks that `pods[i]` holds, for
    /// the at most `k` pods with the longest matches, and to 0 for all others. Returns the greatest.
    ///
    /// `hashes` are those of one chain from its first block on, `pods` the candidates in ascending order, `out` as long
    /// as `pods`. Of equal matches for which there are not enough of the `k` places, the lowest [`PodId::rank`] for
    /// `draw` win. Pods that are not candidates take no place. A look-up refreshes nothing.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than `pods`.
    pub fn longest_matches(
        &self,
        hashes: &[u64],
        pods: &[PodId],
        k: usize,
        draw: u64,
        out: &mut [u32],
    ) -> u32 {
        lookup::longest_matches(&self.state.read().tree, hashes, pods, k, draw, out)
    }

    /// Number of entries of all pods together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.read().entries
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl State {
    fn record(&mut self, pod: PodId, hashes: &[u64], capacity: usize) -> Recorded {
        let Self {
            pods,
            tree,
            entries,
            evicted,
        } = self;
        if hashes.is_empty() || !pods.contains_key(&pod) {
            return Recorded::default();
        }

        // Prompts part only at the ends of runs, and what a pod uses at one time is whole runs of its list.
        let mut path = tree.path(hashes);
        let known: u32 = path.iter().map(|step| step.blocks).sum();
        let new = &hashes[known as usize..];
        if let Some(last) = path.last_mut() {
            let run = &tree.runs[last.run];
            let ends_inside = (last.blocks as usize) < run.hashes.len();
            if ends_inside && (!new.is_empty() || run.held(pod) > last.blocks) {
                last.run = tree.split(last.run, last.blocks, |holder, first| {
                    share(pods, holder, last.blocks, first)
                });
            }
        }
        if !new.is_empty() {
            let end = path.last().map_or(ROOT, |step| step.run);
            let run = tree.grow(end, new);
            // Fits, see `MAX_ENTRIES`.
            let blocks = new.len() as u32;
            match path.last_mut() {
                Some(last) if last.run == run => last.blocks += blocks,
                _ => path.push(Step { run, blocks }),
            }
        }

        let mut recorded = Recorded::default();
        let Some(lru) = pods.get_mut(&pod) else {
            return recorded;
        };
        for step in path.iter().rev() {
            let had = tree.hold(*step, pod, lru);
            recorded.refreshed += had as usize;
            recorded.added += (step.blocks - had) as usize;
        }
        lru.blocks += recorded.added;
        *entries += recorded.added;
        let surplus = lru.blocks.saturating_sub(capacity);
        recorded.evicted = evict(tree, lru, pod, surplus);
        lru.evicted += recorded.evicted as u64;
        *entries -= recorded.evicted;
        *evicted += recorded.evicted as u64;
        recorded
    }

    /// Drops up to `count` least recently used entries of a pod and returns how many there were.
    fn drop_oldest(&mut self, pod: PodId, count: usize) -> usize {
        let Some(lru) = self.pods.get_mut(&pod) else {
            return 0;
        };
        let dropped = evict(&mut self.tree, lru, pod, count);
        self.entries -= dropped;
        dropped
    }
}

/// Takes up to `count` entries from a pod, the least recently used ones, and returns how many there were.
fn evict(tree: &mut Tree, lru: &mut Lru, pod: PodId, count: usize) -> usize {
    let mut left = count;
    while left > 0
        && let Some(run) = lru.oldest()
    {
        let (dropped, all) = tree.release(run, pod, left);
        if all {
            lru.pop_oldest();
        }
        left -= dropped;
    }
    lru.blocks -= count - left;
    count - left
}

/// Notes in a holder's list that its run was cut after `blocks` blocks. Returns the slot of the new, first part.
fn share(pods: &mut HashMap<PodId, Lru>, holder: Holder, blocks: u32, first: u32) -> u32 {
    let Some(lru) = pods.get_mut(&holder.pod) else {
        return holder.slot;
    };
    if holder.held > blocks {
        return lru.push_before(holder.slot, first);
    }
    lru.rename(holder.slot, first);
    holder.slot
}

#[cfg(test)]
mod tests;
