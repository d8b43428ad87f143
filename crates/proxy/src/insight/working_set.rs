//! How many different blocks are asked for: what the lists of prefix-cache would have to hold to drop nothing that is used
//! again.
//!
//! Counted from the first eviction on, before which the lists hold it all; until then a request pays one load. A block
//! takes part if the low bits of its hash are zero, so that the share that is kept is the same for all blocks, and they
//! are halved when they become too many (distinct sampling: Gibbons, "Distinct Sampling for Highly-Accurate Answers to
//! Distinct Values Queries", VLDB 2001).

use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Low bits that are zero at first: one block of eight takes part.
const FIRST_BITS: u32 = 3;
/// Blocks that are kept of a generation at most; the error of the count is then below 1 %. Both take half a megabyte.
const KEPT: usize = 16_384;
/// Time of a generation. Two are kept, so what is told is of the last 7.5 to 15 minutes.
const GENERATION: Duration = Duration::from_secs(450);

/// Blocks that were looked up lately.
#[derive(Debug, Default)]
pub(crate) struct WorkingSet {
    on: AtomicBool,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    /// Bits beyond the first ones.
    more_bits: u32,
    began: Duration,
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    hashes: HashSet<u64>,
    /// Blocks that no pod held, and those of them that had been looked up before.
    missed: u64,
    again: u64,
}

/// What was looked up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Looked {
    /// Different blocks, an estimate.
    pub(crate) blocks: u64,
    /// Of the blocks that no pod held, the share that had been looked up before; `None` without any.
    pub(crate) again: Option<f64>,
}

fn takes_part(hash: u64, bits: u32) -> bool {
    hash.trailing_zeros() >= bits
}

impl WorkingSet {
    /// An entry was dropped.
    pub(crate) fn evicting(&self) {
        self.on.store(true, Relaxed);
    }

    /// These blocks of a prompt were looked up, the first `held` of which a pod held.
    pub(crate) fn look(&self, hashes: &[u64], held: u32) {
        if !self.on.load(Relaxed) {
            return;
        }
        let blocks = hashes.iter().zip(0u32..);
        let blocks: SmallVec<[(u64, bool); 32]> = blocks
            .filter(|(hash, _)| takes_part(**hash, FIRST_BITS))
            .map(|(hash, number)| (*hash, number >= held))
            .collect();
        if !blocks.is_empty() {
            self.generations.lock().look(&blocks);
        }
    }

    /// Begins a new generation when it is time. To be called about once a second; `at` is the time since the start.
    pub(crate) fn note(&self, at: Duration) {
        let mut all = self.generations.lock();
        if at.saturating_sub(all.began) >= GENERATION {
            all.began = at;
            all.old = std::mem::take(&mut all.young);
        }
    }

    /// What was looked up in the last minutes; `None` while nothing was evicted.
    pub(crate) fn looked(&self) -> Option<Looked> {
        let on = self.on.load(Relaxed);
        on.then(|| self.generations.lock().looked())
    }
}

impl Generations {
    fn look(&mut self, blocks: &[(u64, bool)]) {
        for &(hash, missed) in blocks {
            if !takes_part(hash, FIRST_BITS + self.more_bits) {
                continue;
            }
            let known = self.old.hashes.contains(&hash) | !self.young.hashes.insert(hash);
            self.young.missed += u64::from(missed);
            self.young.again += u64::from(missed && known);
        }
        while self.young.hashes.len() > KEPT {
            self.more_bits += 1;
            // As if those that leave had never taken part.
            for generation in [&mut self.young, &mut self.old] {
                generation.missed /= 2;
                generation.again /= 2;
            }
            let bits = FIRST_BITS + self.more_bits;
            self.young.hashes.retain(|hash| takes_part(*hash, bits));
            self.old.hashes.retain(|hash| takes_part(*hash, bits));
        }
    }

    fn looked(&self) -> Looked {
        let kept = self.young.hashes.union(&self.old.hashes).count() as u64;
        let [missed, again] = [
            self.young.missed + self.old.missed,
            self.young.again + self.old.again,
        ];
        Looked {
            blocks: kept << (FIRST_BITS + self.more_bits),
            again: (missed > 0).then(|| again as f64 / missed as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prefix_index::Chain;

    /// The blocks of prompt number `n`.
    fn prompt(n: usize) -> Vec<u64> {
        let mut chain = Chain::new("m", 64, 128);
        let _ = chain.push(format!("{n:064}").repeat(100).as_bytes());
        chain.finish().to_vec()
    }

    fn after(prompts: impl IntoIterator<Item = usize>) -> WorkingSet {
        let set = WorkingSet::default();
        set.evicting();
        prompts.into_iter().for_each(|n| set.look(&prompt(n), 0));
        set
    }

    #[test]
    fn a_loop_over_prompts_is_as_large_as_its_prompts() {
        for prompts in [20, 500, 3000] {
            let set = after((0..4 * prompts).map(|n| n % prompts));
            let Looked { blocks, again } = set.looked().unwrap();
            let off = blocks as f64 / (100 * prompts) as f64 - 1.0;
            assert!(off.abs() < 0.1, "{blocks} of {prompts} prompts");
            assert!((again.unwrap() - 0.75).abs() < 0.01, "{again:?}");
            assert!(set.generations.lock().young.hashes.len() <= KEPT);
        }
        assert_eq!(after(0..50).looked().unwrap().again, Some(0.0), "all new");
    }

    #[test]
    fn what_was_not_asked_for_lately_is_forgotten() {
        let set = after(0..100);
        let blocks = || set.looked().unwrap().blocks;
        let all = blocks();
        set.note(GENERATION);
        assert_eq!(blocks(), all, "of the generation before");
        set.note(GENERATION * 2);
        assert_eq!(blocks(), 0);
    }

    #[test]
    fn nothing_is_kept_before_the_first_eviction() {
        let set = WorkingSet::default();
        set.look(&prompt(1), 0);
        assert_eq!(set.looked(), None);
        set.evicting();
        assert_eq!(set.looked().unwrap().blocks, 0);
        set.look(&prompt(1), 100);
        assert_eq!(set.looked().unwrap().again, None, "a pod had it");
    }
}
