//! One pod's entries in the order of their last use: a doubly linked list inside a slab.

/// No node.
const NIL: u32 = u32::MAX;

/// 16 bytes, so that a cache line holds four entries; blocks of one prompt mostly sit side by side.
#[derive(Clone, Copy, Debug)]
struct Node {
    hash: u64,
    newer: u32,
    older: u32,
}

/// A list of block hashes, most recently used first. Free nodes are chained through `older`.
#[derive(Debug)]
pub(crate) struct Lru {
    nodes: Vec<Node>,
    newest: u32,
    oldest: u32,
    free: u32,
    len: usize,
}

impl Lru {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            newest: NIL,
            oldest: NIL,
            free: NIL,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for `extra` more entries. The slab doubles, but not beyond `limit` entries unless it must.
    pub(crate) fn reserve(&mut self, extra: usize, limit: usize) {
        let needed = self.len + extra;
        if needed > self.nodes.capacity() {
            let target = needed.max((2 * self.nodes.capacity()).min(limit));
            self.nodes.reserve_exact(target - self.nodes.len());
        }
    }

    /// Adds an entry as the most recently used one and returns its slot.
    pub(crate) fn push(&mut self, hash: u64) -> u32 {
        let node = Node {
            hash,
            newer: NIL,
            older: NIL,
        };
        let slot = self.free;
        let slot = if slot == NIL {
            self.nodes.push(node);
            // Fits: the index bounds capacity and prompt length, see `index::MAX_ENTRIES`.
            (self.nodes.len() - 1) as u32
        } else {
            self.free = self.nodes[slot as usize].older;
            self.nodes[slot as usize] = node;
            slot
        };
        self.join(slot, self.newest);
        self.join(NIL, slot);
        self.len += 1;
        slot
    }

    /// Makes an entry the most recently used one, and with it those right before it in the list that are, from last to
    /// first, the end of `before`. They keep their order. Returns how many entries moved, this one included.
    pub(crate) fn touch_run(&mut self, slot: u32, before: &[u64]) -> usize {
        let (oldest, mut newest, mut count) = (slot, slot, 1);
        for &hash in before.iter().rev() {
            let next = self.nodes[newest as usize].newer;
            if self.nodes.get(next as usize).is_none_or(|n| n.hash != hash) {
                break;
            }
            newest = next;
            count += 1;
        }
        if newest != self.newest {
            let newer = self.nodes[newest as usize].newer;
            let older = self.nodes[oldest as usize].older;
            self.join(newer, older);
            self.join(oldest, self.newest);
            self.join(NIL, newest);
        }
        count
    }

    /// Removes the least recently used entry, if there is one.
    pub(crate) fn pop_oldest(&mut self) {
        let slot = self.oldest;
        if slot != NIL {
            self.join(self.nodes[slot as usize].newer, NIL);
            self.nodes[slot as usize].older = self.free;
            self.free = slot;
            self.len -= 1;
        }
    }

    /// The entries with their slots, least recently used first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = (u64, u32)> {
        let mut slot = self.oldest;
        std::iter::from_fn(move || {
            let node = self.nodes.get(slot as usize)?;
            let item = (node.hash, slot);
            slot = node.newer;
            Some(item)
        })
    }

    /// What is wrong with the list, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut older = NIL;
        let mut linked = 0;
        for (hash, slot) in self.oldest_first() {
            if self.nodes[slot as usize].older != older {
                return Err(format!(
                    "node {slot} of block {hash:x} does not point back to {older}"
                ));
            }
            older = slot;
            linked += 1;
            if linked > self.nodes.len() {
                return Err("the list is a circle".into());
            }
        }
        if self.newest != older || linked != self.len {
            return Err(format!(
                "{linked} nodes linked, {} counted, newest {}",
                self.len, self.newest
            ));
        }
        let mut free = 0;
        let mut slot = self.free;
        while let Some(node) = self.nodes.get(slot as usize) {
            free += 1;
            slot = node.older;
            if free > self.nodes.len() {
                return Err("the free list is a circle".into());
            }
        }
        if linked + free == self.nodes.len() {
            Ok(())
        } else {
            Err(format!(
                "{linked} linked and {free} free of {} nodes",
                self.nodes.len()
            ))
        }
    }

    /// Makes two entries neighbours; no entry stands for the end of the list.
    fn join(&mut self, newer: u32, older: u32) {
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }
}
