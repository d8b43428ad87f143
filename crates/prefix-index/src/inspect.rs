//! A look inside, for tests, model checks and debugging. Nothing here is on the request path.

use crate::index::State;
use crate::tree::{ROOT, Run};
use crate::{PodId, PrefixIndex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Runs that are looked at before waiting requests may pass; some 20 µs.
const LOOK_STEP: usize = 2048;

/// How full one pod's list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The pod.
    pub pod: PodId,
    /// Entries that it holds.
    pub entries: usize,
    /// Entries that were dropped because its list was full, since it was admitted.
    pub evictions: u64,
}

/// A beginning that several prompts have in common, or that several pods hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPrefix {
    /// Hash of its last block, which stands for all of it.
    pub hash: u64,
    /// Its length in blocks.
    pub blocks: usize,
    /// Pods that hold all of it.
    pub pods: usize,
    /// Hash of one of its first blocks, by which a prompt can be told to begin with it; see
    /// [`PrefixIndex::shared_prefixes`].
    pub head: u64,
}

/// A beginning that may be shared, ordered by how much it is: pods that hold all of it, then runs that follow its run. Its
/// hash tells later whether place and blocks still stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    pods: usize,
    followers: u32,
    hash: u64,
    run: u32,
    /// Blocks of that run.
    blocks: usize,
}

/// The shared beginnings that end in a run: at its end, or where all holders but one end.
fn candidates(number: u32, run: &Run) -> impl Iterator<Item = Candidate> {
    let held = |least: usize| run.holders.iter().filter(move |h| h.held as usize >= least);
    let all = run.hashes.len();
    let whole = held(all).count();
    let at_its_end = (whole > 1 || run.children > 1).then_some((all, run.children));
    let second = run
        .holders
        .iter()
        .map(|h| h.held as usize)
        .filter(|held| *held < all);
    let inside = second
        .max()
        .filter(|_| whole == 1)
        .map(|blocks| (blocks, 0));
    let found = at_its_end.into_iter().chain(inside);
    found.filter_map(move |(blocks, followers)| {
        let hash = *run.hashes.get(blocks.checked_sub(1)?)?;
        Some(Candidate {
            pods: held(blocks).count(),
            followers,
            hash,
            run: number,
            blocks,
        })
    })
}

impl PrefixIndex {
    /// Entries that a pod holds at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries that were dropped because a pod's list was full, those of pods that are gone included.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.state.read().evicted
    }

    /// How full each pod's list is, in no order.
    #[must_use]
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let state = self.state.read();
        let of = |(&pod, lru): (&PodId, &crate::lru::Lru)| Occupancy {
            pod,
            entries: lru.blocks,
            evictions: lru.evicted,
        };
        state.pods.iter().map(of).collect()
    }

    /// The beginnings that most pods hold, at most `limit` of them; among equals those that prompts go on from in more
    /// ways come first, then the longer ones. What one pod holds, and one prompt goes on from, is not shared.
    ///
    /// `head` of each is the hash of its block number `head_blocks`, counted from 1, or of its last block if it is shorter.
    ///
    /// Looks at every run, a few thousand at a time; what changes in between may be missed.
    #[must_use]
    pub fn shared_prefixes(&self, limit: usize, head_blocks: usize) -> Vec<SharedPrefix> {
        let mut best: BinaryHeap<Reverse<Candidate>> = BinaryHeap::new();
        let mut from = 0;
        loop {
            let state = self.state.read();
            let runs = &state.tree.runs;
            if from >= runs.places() {
                break;
            }
            let to = runs.places().min(from + LOOK_STEP);
            for number in from as u32..to as u32 {
                for candidate in candidates(number, &runs[number]) {
                    best.push(Reverse(candidate));
                    if best.len() > limit {
                        best.pop();
                    }
                }
            }
            from = to;
        }
        let state = self.state.read();
        let mut found: Vec<_> = best
            .into_iter()
            .filter_map(|Reverse(one)| Some((one.followers, state.shared(one, head_blocks)?)))
            .collect();
        found.sort_by_key(|(followers, prefix)| Reverse((prefix.pods, *followers, prefix.blocks)));
        found.into_iter().map(|(_, prefix)| prefix).collect()
    }

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

impl State {
    /// A candidate with its length from the root, unless it is gone by now.
    fn shared(&self, found: Candidate, head_blocks: usize) -> Option<SharedPrefix> {
        let runs = &self.tree.runs;
        let last = runs.get(found.run)?;
        if last.hashes.get(found.blocks - 1) != Some(&found.hash) {
            return None;
        }
        let mut path = vec![&last.hashes[..found.blocks]];
        let mut at = last.parent;
        while at != ROOT {
            path.push(&runs[at].hashes);
            at = runs[at].parent;
        }
        let blocks = path.iter().map(|hashes| hashes.len()).sum();
        let mut hashes = path.iter().rev().copied().flatten();
        let head = hashes.nth(head_blocks.clamp(1, blocks) - 1);
        Some(SharedPrefix {
            hash: found.hash,
            blocks,
            pods: found.pods,
            head: *head?,
        })
    }
}
