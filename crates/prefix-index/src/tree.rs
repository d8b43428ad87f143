//! All recorded prompts as a tree of runs, and who holds how much of each run.
//!
//! A run is a stretch of blocks that follow each other in every recorded prompt that has one of them: prompts part
//! only at the ends of runs. It is what a radix tree (Morrison, "PATRICIA", 1968) calls an edge, over block hashes in place
//! of characters. Prompts are long and part at few places, so there are few runs, and what is done for a prompt costs a few
//! jumps through memory, not one for each block:
//!
//! - the hashes of a run lie side by side, and its last one tells whether a prompt has all of it;
//! - one map entry finds a run: by the run before it and its first hash;
//! - one entry in its list of holders says that a pod has the first n of its blocks.

use crate::PodId;
use crate::lru::Lru;
use crate::slab::Slab;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::collections::HashMap;

/// In place of a run: before the first one.
pub(crate) const ROOT: u32 = u32::MAX;

/// Independent maps. One that is full is copied while the index is locked; in so many parts that is a fraction of a
/// millisecond even when each of five million blocks is a run of its own.
const MAPS: usize = 1024;

/// A run and its holders.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The run before.
    pub(crate) parent: u32,
    /// Number of runs that follow.
    pub(crate) children: u32,
    /// The hashes of its blocks. Exactly as many as the holder with the most holds. Two fit in place: what parts from a
    /// long shared prompt may be short.
    pub(crate) hashes: SmallVec<[u64; 2]>,
    /// Ascending by pod. One fits in place.
    pub(crate) holders: SmallVec<[Holder; 1]>,
}

/// One pod that holds the first blocks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pod: PodId,
    /// Number of blocks, at least one.
    pub(crate) held: u32,
    /// The run's slot in the pod's list.
    pub(crate) slot: u32,
}

impl Run {
    /// Where a pod is among the holders, or would be.
    pub(crate) fn find(&self, pod: PodId) -> Result<usize, usize> {
        self.holders.binary_search_by_key(&pod, |h| h.pod)
    }

    /// Number of blocks that a pod holds.
    pub(crate) fn held(&self, pod: PodId) -> u32 {
        self.find(pod).map_or(0, |at| self.holders[at].held)
    }
}

/// One run on the way of a prompt, and how many of its blocks the prompt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) run: u32,
    pub(crate) blocks: u32,
}

/// The way of a prompt through the tree. All steps but the last cover their whole run.
pub(crate) type Path = SmallVec<[Step; 8]>;

/// The runs and how they follow each other.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) runs: Slab<Run>,
    /// Each run by its first hash. A map holds the numbers alone; whether a run is the one sought it says itself.
    links: Box<[HashTable<u32>]>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            runs: Slab::new(),
            links: (0..MAPS).map(|_| HashTable::new()).collect(),
        }
    }

    /// How far the tree knows a prompt.
    pub(crate) fn path(&self, hashes: &[u64]) -> Path {
        let mut path = Path::new();
        let (mut at, mut rest) = (ROOT, hashes);
        while let Some(run) = rest.first().and_then(|&hash| self.after(at, hash)) {
            let known = &self.runs[run].hashes;
            let same = common(known, rest);
            path.push(Step {
                run,
                // Fits: `index::MAX_ENTRIES` bounds what is recorded at once, and a run grows no longer than a prompt.
                blocks: same as u32,
            });
            if same < known.len() {
                break;
            }
            (at, rest) = (run, &rest[same..]);
        }
        path
    }

    /// Adds blocks after a run, or at the root: to that run, if nothing follows it yet, or else as a run of their own.
    /// Returns the run that now ends with them. Somebody must hold them next.
    pub(crate) fn grow(&mut self, after: u32, hashes: &[u64]) -> u32 {
        if after != ROOT {
            let run = &mut self.runs[after];
            if run.children == 0 {
                // A conversation grows with every turn; room for turns that may never come would be memory lost.
                run.hashes.reserve_exact(hashes.len());
                run.hashes.extend_from_slice(hashes);
                return after;
            }
            run.children += 1;
        }
        let run = self.runs.insert(Run {
            parent: after,
            children: 0,
            hashes: SmallVec::from_slice(hashes),
            holders: SmallVec::new(),
        });
        self.link(hashes[0], run);
        run
    }

    /// Cuts a run after `blocks` of its blocks, of which some must be left. Returns the new run, which has the first
    /// part; the last part keeps the number. `share` is told of each holder of the run: it gets the holder and the new
    /// run and returns the slot of that run in the pod's list; the holder's own slot is from then on that of the last
    /// part if it holds some of that.
    pub(crate) fn split(
        &mut self,
        last: u32,
        blocks: u32,
        mut share: impl FnMut(Holder, u32) -> u32,
    ) -> u32 {
        let run = &mut self.runs[last];
        let (head, tail) = run.hashes.split_at(blocks as usize);
        let (start, cut, tail) = (head[0], tail[0], SmallVec::from_slice(tail));
        let head = Run {
            parent: run.parent,
            children: 1,
            hashes: SmallVec::from_slice(head),
            holders: SmallVec::new(),
        };
        let first = self.runs.insert(head);
        self.relink(start, last, first);

        let run = &mut self.runs[last];
        run.parent = first;
        run.hashes = tail;
        let mut holders = SmallVec::with_capacity(run.holders.len());
        run.holders.retain(|holder| {
            let slot = share(*holder, first);
            holders.push(Holder {
                held: holder.held.min(blocks),
                slot,
                ..*holder
            });
            holder.held = holder.held.saturating_sub(blocks);
            holder.held > 0
        });
        run.holders.shrink_to_fit();
        self.runs[first].holders = holders;

        self.link(cut, last);
        first
    }

    /// Lets a pod hold the blocks of a step, as its most recently used ones, and returns how many of them it held. It must
    /// not hold more of the run.
    pub(crate) fn hold(&mut self, step: Step, pod: PodId, lru: &mut Lru) -> u32 {
        let run = &mut self.runs[step.run];
        match run.find(pod) {
            Ok(at) => {
                let holder = &mut run.holders[at];
                lru.touch(holder.slot);
                std::mem::replace(&mut holder.held, step.blocks)
            }
            Err(at) => {
                let holder = Holder {
                    pod,
                    held: step.blocks,
                    slot: lru.push(step.run),
                };
                run.holders.insert(at, holder);
                0
            }
        }
    }

    /// Takes up to `count` blocks of a run, the last ones, from a pod. Returns how many, and whether these were all.
    pub(crate) fn release(&mut self, number: u32, pod: PodId, count: usize) -> (usize, bool) {
        let run = &mut self.runs[number];
        let Ok(at) = run.find(pod) else {
            return (0, true);
        };
        let holder = &mut run.holders[at];
        let held = holder.held as usize;
        let dropped = held.min(count);
        holder.held -= dropped as u32;
        let all = holder.held == 0;
        if all {
            run.holders.remove(at);
            if run.holders.spilled() && run.holders.len() * 4 <= run.holders.capacity() {
                // A fleet that shrank must not keep the memory of the large one.
                run.holders.shrink_to_fit();
            }
        }
        if held == run.hashes.len() {
            self.trim(number);
        }
        (dropped, all)
    }

    /// Drops from a run what nobody holds any more: its last blocks, or all of it.
    fn trim(&mut self, number: u32) {
        let run = &mut self.runs[number];
        let longest = run.holders.iter().map(|h| h.held).max().unwrap_or(0) as usize;
        if longest == 0 {
            self.remove(number);
        } else if longest < run.hashes.len() {
            run.hashes.truncate(longest);
            // A quarter is lost at most, and a run that is evicted block by block is not copied for each.
            if longest * 4 <= run.hashes.capacity() * 3 {
                run.hashes.shrink_to_fit();
            }
        }
    }

    /// The run that follows another one, or the root, with this first hash.
    fn after(&self, parent: u32, hash: u64) -> Option<u32> {
        let sought = |&number: &u32| {
            let run = &self.runs[number];
            run.parent == parent && run.hashes.first() == Some(&hash)
        };
        self.links[map_of(hash)].find(hash, sought).copied()
    }

    fn link(&mut self, hash: u64, run: u32) {
        let first = |&number: &u32| self.runs[number].hashes[0];
        self.links[map_of(hash)].insert_unique(hash, run, first);
    }

    /// Lets the first hash of a run find another one, which has it now.
    fn relink(&mut self, hash: u64, run: u32, now: u32) {
        let links = &mut self.links[map_of(hash)];
        if let Some(link) = links.find_mut(hash, |&number| number == run) {
            *link = now;
        }
    }

    /// Removes a run that nobody holds. Whoever holds a block holds all before it, so nothing follows it.
    fn remove(&mut self, number: u32) {
        let run = self.runs.remove(number);
        if run.parent != ROOT {
            self.runs[run.parent].children -= 1;
        }
        let hash = run.hashes[0];
        let links = &mut self.links[map_of(hash)];
        if let Ok(link) = links.find_entry(hash, |&other| other == number) {
            link.remove();
        }
        if links.len() * 8 < links.capacity() {
            // A fleet that shrank must not keep the memory of the large one.
            links.shrink_to(links.len() * 2, |&run| self.runs[run].hashes[0]);
        }
    }

    /// Runs for which there is room.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.runs.iter().count()
    }

    /// Runs that the maps have room for.
    #[cfg(test)]
    pub(crate) fn link_capacity(&self) -> usize {
        self.links.iter().map(HashTable::capacity).sum()
    }

    /// What is wrong with the tree, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let used = || self.runs.iter().filter(|(_, run)| !run.hashes.is_empty());
        let mut followers = HashMap::<u32, u32>::new();
        used().for_each(|(_, run)| *followers.entry(run.parent).or_default() += 1);
        for (number, run) in used() {
            let children = followers.get(&number).copied().unwrap_or_default();
            let longest = run.holders.iter().map(|h| h.held as usize).max();
            let whole = run.parent == ROOT || !self.runs[run.parent].hashes.is_empty();
            if !run.holders.is_sorted_by(|a, b| a.pod < b.pod)
                || run.holders.iter().any(|h| h.held == 0)
                || longest != Some(run.hashes.len())
                || children != run.children
                || self.after(run.parent, run.hashes[0]) != Some(number)
                || !whole
            {
                return Err(format!("run {number}, {children} follow: {run:?}"));
            }
        }
        let linked: usize = self.links.iter().map(HashTable::len).sum();
        let used = used().count();
        if used == self.runs.len() && used == linked {
            Ok(())
        } else {
            Err(format!(
                "{used} runs, {} counted, {linked} linked",
                self.runs.len()
            ))
        }
    }
}

/// Number of leading blocks that two stretches of chains have in common.
///
/// A hash stands for all blocks before it as well, so only few are compared: of a run that is known to the end one, of
/// another one those that a bisection asks for.
fn common(run: &[u64], prompt: &[u64]) -> usize {
    let (mut yes, mut no) = (0, run.len().min(prompt.len()));
    let mut middle = no;
    while yes < no {
        if run[middle - 1] == prompt[middle - 1] {
            yes = middle;
        } else {
            no = middle - 1;
        }
        middle = (yes + no).div_ceil(2);
    }
    yes
}

/// By bits from the middle: within a map the place comes from the lowest and the tag from the highest ones.
fn map_of(hash: u64) -> usize {
    (hash >> 40) as usize % MAPS
}
