//! The map from block hash to the pods that hold the block.

use crate::PodId;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::{SmallVec, smallvec};

/// Marks, in place of a slot, that `pod` is the number of a group.
const GROUP: u32 = u32::MAX;

/// Independent tables. A table that is full doubles while the index is locked; in 64 parts that is about a millisecond
/// at five million entries instead of a hundred.
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
#[derive(Debug)]
struct Posting {
    hash: u64,
    holder: Holder,
}

/// Block hash → holders, ascending by pod.
#[derive(Debug)]
pub(crate) struct Postings {
    tables: Box<[HashTable<Posting>]>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
}

/// The hash of a block hash: itself, it is uniform already.
fn identity(posting: &Posting) -> u64 {
    posting.hash
}

/// hashbrown uses the lowest bits and the highest seven; these are between.
fn table_of(hash: u64) -> usize {
    (hash >> 48) as usize % TABLES
}

impl Postings {
    pub(crate) fn new() -> Self {
        let tables = (0..TABLES).map(|_| HashTable::new()).collect();
        Self {
            tables,
            groups: Vec::new(),
            free_groups: Vec::new(),
        }
    }

    /// The pods that hold a block, ascending by pod.
    pub(crate) fn holders(&self, hash: u64) -> &[Holder] {
        match self.tables[table_of(hash)].find(hash, |p| p.hash == hash) {
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
        let entry = self.tables[table_of(hash)].entry(hash, |p| p.hash == hash, identity);
        match entry {
            Entry::Vacant(vacant) => {
                vacant.insert(Posting {
                    hash,
                    holder: Holder {
                        pod,
                        slot: new_slot(),
                    },
                });
                None
            }
            Entry::Occupied(mut occupied) => {
                let holder = &mut occupied.get_mut().holder;
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
        }
    }

    /// Takes a pod from a block's holders.
    pub(crate) fn remove(&mut self, hash: u64, pod: PodId) {
        let Ok(mut found) = self.tables[table_of(hash)].find_entry(hash, |p| p.hash == hash) else {
            return;
        };
        let holder = &mut found.get_mut().holder;
        if holder.slot != GROUP {
            found.remove();
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
        let postings = self.tables.iter().flat_map(HashTable::iter);
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

    /// What is wrong with the groups, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut used = 0;
        for posting in self
            .tables
            .iter()
            .flat_map(HashTable::iter)
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
