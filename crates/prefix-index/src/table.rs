//! A hash table of block hashes that stays dense and grows by a linear copy.
//!
//! Open addressing with linear probing in which the entries are in ascending order of their hashes (Amble and Knuth,
//! "Ordered hash tables", 1974). An entry's home is its hash scaled to the size of the table, which keeps that order, so:
//!
//! - a look-up reads on from the home until it meets the hash, a greater one or a gap: about two entries of 16 bytes
//!   at the highest load, mostly in one cache line, and no more for a hash that is not there;
//! - removing moves the following entries back; there are no tombstones, and neither memory nor speed suffer from
//!   entries that come and go for days;
//! - growing and shrinking copy from front to back without hashing, to any size, not only to powers of two.
//!
//! A table with tombstones that doubles was measured first: 46 to 56 bytes per index entry while filling, 74 after
//! every entry had been replaced twenty times. This one has 44 to 52, and stays there. `examples/memory.rs` prints them.

use crate::postings::{Holder, Posting};

/// Highest number of entries per hundred homes.
const MAX_LOAD: usize = 70;

/// Entries per hundred homes after growing or shrinking: a step of a quarter.
const NEW_LOAD: usize = 56;

/// Below this number of entries per hundred homes the table shrinks.
const MIN_LOAD: usize = 28;

/// How far on a look-up mostly ends, in slots.
const TOUCH_AHEAD: usize = 4;

/// Homes of the smallest table that shrinks or grows by the rule.
const MIN_HOMES: usize = 64;

/// Block hash → posting.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Where hashes may begin; there are as many slots, and a few more when the last homes are crowded.
    homes: usize,
    slots: Vec<Posting>,
    len: usize,
}

impl Table {
    /// The posting of a block.
    pub(crate) fn get(&self, hash: u64) -> Option<&Posting> {
        self.find(hash).ok().map(|at| &self.slots[at])
    }

    /// Where the posting of a block is, or else where it would be. Valid until the table is changed.
    pub(crate) fn find(&self, hash: u64) -> Result<usize, usize> {
        let mut at = home(hash, self.homes);
        loop {
            match self.slots.get(at) {
                Some(p) if p.is_some() && p.hash < hash => at += 1,
                Some(p) if p.is_some() && p.hash == hash => return Ok(at),
                _ => return Err(at),
            }
        }
    }

    /// Reads where a look-up of this block would begin, and a little on. What is read means nothing.
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        let at = home(hash, self.homes);
        let read = |at: usize| self.slots.get(at).map_or(0, |p| p.hash);
        read(at) ^ read(at + TOUCH_AHEAD)
    }

    /// The holder at a place that [`Self::find`] gave.
    pub(crate) fn holder_mut(&mut self, at: usize) -> &mut Holder {
        &mut self.slots[at].holder
    }

    /// Makes room for one more posting.
    pub(crate) fn reserve_one(&mut self) {
        if (self.len + 1) * 100 > self.homes * MAX_LOAD {
            self.rebuild(self.len + 1);
        }
    }

    /// Adds a posting at the place where [`Self::find`] missed it. There must be room.
    pub(crate) fn insert_at(&mut self, at: usize, posting: Posting) {
        let gap = self.slots[at..]
            .iter()
            .position(|p| !p.is_some())
            .map_or(self.slots.len(), |offset| at + offset);
        if gap == self.slots.len() {
            // Not `push` alone, which would double the memory for one slot.
            self.slots.reserve_exact(1);
            self.slots.push(Posting::NONE);
        }
        self.slots.copy_within(at..gap, at + 1);
        self.slots[at] = posting;
        self.len += 1;
    }

    /// Removes the posting at a place that [`Self::find`] gave.
    pub(crate) fn remove_at(&mut self, at: usize) {
        let mut end = at + 1;
        while self
            .slots
            .get(end)
            .is_some_and(|p| p.is_some() && home(p.hash, self.homes) < end)
        {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = Posting::NONE;
        self.len -= 1;
        if self.homes > MIN_HOMES && self.len * 100 < self.homes * MIN_LOAD {
            self.rebuild(self.len);
        }
    }

    /// All postings, ascending by hash.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Posting> {
        self.slots.iter().filter(|p| p.is_some())
    }

    /// What is wrong with the table, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut reachable = 0;
        for posting in self.iter() {
            match self.get(posting.hash) {
                Some(found) if std::ptr::eq(found, posting) => reachable += 1,
                _ => return Err(format!("block {:x} is not found where it is", posting.hash)),
            }
        }
        if reachable == self.len && self.slots.len() >= self.homes {
            Ok(())
        } else {
            Err(format!(
                "{reachable} postings in {} slots, {} counted",
                self.slots.len(),
                self.len
            ))
        }
    }

    /// Copies all postings into a table that is right for `len` of them.
    fn rebuild(&mut self, len: usize) {
        let homes = (len * 100 / NEW_LOAD).max(MIN_HOMES);
        let mut slots = Vec::with_capacity(homes + MIN_HOMES);
        for posting in self.iter() {
            // The first free slot from the home on: all before are taken by lesser hashes.
            slots.resize(slots.len().max(home(posting.hash, homes)), Posting::NONE);
            slots.push(*posting);
        }
        slots.resize(slots.len().max(homes), Posting::NONE);
        *self = Self {
            homes,
            slots,
            len: self.len,
        };
    }
}

/// The hash scaled to `0..homes`: greater hashes have no lesser homes.
fn home(hash: u64, homes: usize) -> usize {
    ((u128::from(hash) * homes as u128) >> 64) as usize
}

#[cfg(test)]
mod tests;
