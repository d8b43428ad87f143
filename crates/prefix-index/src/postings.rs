//! The map from block hash to the pods that hold the block.

use crate::PodId;
use crate::table::Table;
use smallvec::{SmallVec, smallvec};
use std::hint::black_box;

/// Marks, in place of a slot, that `pod` is the number of a group.
const GROUP: u32 = u32::MAX;

/// Marks, in place of a slot, a place of a table without a posting.
const NONE: u32 = u32::MAX - 1;

/// Independent tables. A table that is full is copied while the index is locked; in 64 parts that is a fraction of a
/// millisecond at five million entries, and the memory that is needed twice for a moment is 1/64.
const TABLES: usize = 64;

/// Three holders beside a length and a tag are 32 bytes; one more allocates.
type Group = SmallVec<[Holder; 3]>;

/// One pod that holds a block, and the block's slot in the pod's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) pod: PodId,
    pub(crate) slot: u32,
}

/// 16 bytes: most blocks have one holder, which sits right here. Several holders are in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) hash: u64,
    pub(crate) holder: Holder,
}

impl Posting {
    /// No posting.
    pub(crate) const NONE: Self = Self {
        hash: 0,
        holder: Holder {
            pod: PodId(0),
            slot: NONE,
        },
    };

    pub(crate) fn is_some(&self) -> bool {
        self.holder.slot != NONE
    }
}

/// Block hash → holders, ascending by pod.
#[derive(Debug)]
pub(crate) struct Postings {
    tables: Box<[Table]>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
}

/// By the lowest bits; within a table the place comes from the highest.
fn table_of(hash: u64) -> usize {
    hash as usize % TABLES
}

impl Postings {
    pub(crate) fn new() -> Self {
        let tables = (0..TABLES).map(|_| Table::default()).collect();
        Self {
            tables,
            groups: Vec::new(),
            free_groups: Vec::new(),
        }
    }

    /// Brings the places of these blocks into the CPU's caches.
    ///
    /// The map is far larger than the caches, and a look-up cannot go on until its memory has come. Here no step
    /// depends on what the one before it read, so the CPU waits for many of them at the same time.
    pub(crate) fn touch(&self, hashes: impl Iterator<Item = u64>) {
        black_box(hashes.fold(0, |sum, hash| sum ^ self.tables[table_of(hash)].touch(hash)));
    }

    /// As [`Self::touch`], and what [`Self::holders`] refers to as well.
    pub(crate) fn touch_holders(&self, hashes: impl Iterator<Item = u64> + Clone) {
        self.touch(hashes.clone());
        black_box(hashes.fold(0, |sum, hash| {
            sum ^ self.holders(hash).first().map_or(0, |h| h.slot)
        }));
    }

    /// The pods that hold a block, ascending by pod.
    pub(crate) fn holders(&self, hash: u64) -> &[Holder] {
        match self.tables[table_of(hash)].get(hash) {
            None => &[],
            Some(p) if p.holder.slot == GROUP => &self.groups[p.holder.pod.0 as usize],
            Some(p) => std::slice::from_ref(&p.holder),
        }
    }

    /// Where a pod has a block in its list.
    pub(crate) fn slot(&self, hash: u64, pod: PodId) -> Option<u32> {
        let holders = self.holders(hash);
        holders
            .binary_search_by_key(&pod, |h| h.pod)
            .ok()
            .map(|at| holders[at].slot)
    }

    /// Where a pod has a block in its list; if nowhere, adds the pod as a holder with the slot that `new_slot` gives.
    pub(crate) fn slot_or_insert(
        &mut self,
        hash: u64,
        pod: PodId,
        new_slot: impl FnOnce() -> u32,
    ) -> Option<u32> {
        let table = &mut self.tables[table_of(hash)];
        table.reserve_one();
        let at = match table.find(hash) {
            Ok(at) => at,
            Err(at) => {
                table.insert_at(
                    at,
                    Posting {
                        hash,
                        holder: Holder {
                            pod,
                            slot: new_slot(),
                        },
                    },
                );
                return None;
            }
        };
        let holder = table.holder_mut(at);
        if holder.slot == GROUP {
            let group = &mut self.groups[holder.pod.0 as usize];
            match group.binary_search_by_key(&pod, |h| h.pod) {
                Ok(at) => return Some(group[at].slot),
                Err(at) => group.insert(
                    at,
                    Holder {
                        pod,
                        slot: new_slot(),
                    },
                ),
            }
        } else if holder.pod == pod {
            return Some(holder.slot);
        } else {
            let mut group: Group = smallvec![
                *holder,
                Holder {
                    pod,
                    slot: new_slot()
                }
            ];
            group.sort_unstable_by_key(|h| h.pod);
            *holder = Holder {
                pod: PodId(store(&mut self.groups, &mut self.free_groups, group)),
                slot: GROUP,
            };
        }
        None
    }

    /// Takes a pod from a block's holders.
    pub(crate) fn remove(&mut self, hash: u64, pod: PodId) {
        let table = &mut self.tables[table_of(hash)];
        let Ok(at) = table.find(hash) else { return };
        let holder = table.holder_mut(at);
        if holder.slot != GROUP {
            table.remove_at(at);
            return;
        }
        let number = holder.pod.0;
        let group = &mut self.groups[number as usize];
        if let Ok(at) = group.binary_search_by_key(&pod, |h| h.pod) {
            group.remove(at);
        }
        if let [last] = group[..] {
            *holder = last;
            *group = Group::new();
            self.free_groups.push(number);
        } else if group.spilled() && group.len() * 4 <= group.capacity() {
            // A fleet that shrank must not keep the memory of the large one.
            group.shrink_to_fit();
        }
    }

    /// Number of (block, pod) pairs, counted one by one.
    pub(crate) fn count(&self) -> usize {
        let postings = self.tables.iter().flat_map(Table::iter);
        postings
            .map(|p| {
                if p.holder.slot == GROUP {
                    self.groups[p.holder.pod.0 as usize].len()
                } else {
                    1
                }
            })
            .sum()
    }

    /// What is wrong with the tables and the groups, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.tables.iter().try_for_each(Table::check)?;
        let mut used = 0;
        for posting in self
            .tables
            .iter()
            .flat_map(Table::iter)
            .filter(|p| p.holder.slot == GROUP)
        {
            let group = &self.groups[posting.holder.pod.0 as usize];
            used += 1;
            if group.len() < 2 || !group.is_sorted_by(|a, b| a.pod < b.pod) {
                return Err(format!("holders of block {:x} are {group:?}", posting.hash));
            }
        }
        if used + self.free_groups.len() == self.groups.len() {
            Ok(())
        } else {
            Err(format!(
                "{used} groups used and {} free of {}",
                self.free_groups.len(),
                self.groups.len()
            ))
        }
    }
}

/// Puts a group into the slab and returns its number.
fn store(groups: &mut Vec<Group>, free: &mut Vec<u32>, group: Group) -> u32 {
    if let Some(number) = free.pop() {
        groups[number as usize] = group;
        number
    } else {
        groups.push(group);
        // More than 2^32 groups of 32 bytes do not fit into memory.
        (groups.len() - 1) as u32
    }
}
