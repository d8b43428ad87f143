//! One pod's runs of blocks in the order of their last use: a doubly linked list inside a slab.

/// No item.
const NIL: u32 = u32::MAX;

/// One run that the pod holds, from its first block on. How many blocks of it says the run's holder entry.
#[derive(Clone, Copy, Debug)]
struct Item {
    run: u32,
    newer: u32,
    older: u32,
}

/// A list of runs, most recently used first. Free items are chained through `older`.
#[derive(Debug)]
pub(crate) struct Lru {
    items: Vec<Item>,
    newest: u32,
    oldest: u32,
    free: u32,
    /// Blocks that the pod holds, in all its runs.
    pub(crate) blocks: usize,
    /// Blocks that were dropped because the list was full.
    pub(crate) evicted: u64,
}

impl Lru {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            newest: NIL,
            oldest: NIL,
            free: NIL,
            blocks: 0,
            evicted: 0,
        }
    }

    /// Adds a run as the most recently used one and returns its slot.
    pub(crate) fn push(&mut self, run: u32) -> u32 {
        let slot = self.slot(run);
        self.join(slot, self.newest);
        self.join(NIL, slot);
        slot
    }

    /// Adds a run as just more recently used than another one and returns its slot.
    pub(crate) fn push_before(&mut self, older: u32, run: u32) -> u32 {
        let slot = self.slot(run);
        let newer = self.items[older as usize].newer;
        self.join(slot, older);
        self.join(newer, slot);
        slot
    }

    /// Lets a slot stand for another run.
    pub(crate) fn rename(&mut self, slot: u32, run: u32) {
        self.items[slot as usize].run = run;
    }

    /// Makes a run the most recently used one.
    pub(crate) fn touch(&mut self, slot: u32) {
        if slot != self.newest {
            self.unlink(slot);
            self.join(slot, self.newest);
            self.join(NIL, slot);
        }
    }

    /// The least recently used run.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.items.get(self.oldest as usize).map(|item| item.run)
    }

    /// Removes the least recently used run, if there is one.
    pub(crate) fn pop_oldest(&mut self) {
        let slot = self.oldest;
        if slot != NIL {
            self.unlink(slot);
            self.items[slot as usize].older = self.free;
            self.free = slot;
        }
    }

    /// The runs with their slots, least recently used first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut slot = self.oldest;
        std::iter::from_fn(move || {
            let item = self.items.get(slot as usize)?;
            let found = (item.run, slot);
            slot = item.newer;
            Some(found)
        })
    }

    /// What is wrong with the list, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut older = NIL;
        let mut linked = 0;
        for (run, slot) in self.oldest_first() {
            if self.items[slot as usize].older != older {
                return Err(format!(
                    "item {slot} of run {run} does not point back to {older}"
                ));
            }
            older = slot;
            linked += 1;
            if linked > self.items.len() {
                return Err("the list is a circle".into());
            }
        }
        let mut free = 0;
        let mut slot = self.free;
        while let Some(item) = self.items.get(slot as usize) {
            free += 1;
            slot = item.older;
            if free > self.items.len() {
                return Err("the free list is a circle".into());
            }
        }
        if self.newest == older && linked + free == self.items.len() {
            Ok(())
        } else {
            Err(format!(
                "{linked} linked and {free} free of {} items",
                self.items.len()
            ))
        }
    }

    /// A free slot, for this run.
    fn slot(&mut self, run: u32) -> u32 {
        let item = Item {
            run,
            newer: NIL,
            older: NIL,
        };
        let slot = self.free;
        if slot == NIL {
            self.items.push(item);
            // Fits: there are no more items than blocks, see `index::MAX_ENTRIES`.
            return (self.items.len() - 1) as u32;
        }
        self.free = self.items[slot as usize].older;
        self.items[slot as usize] = item;
        slot
    }

    fn unlink(&mut self, slot: u32) {
        let Item { newer, older, .. } = self.items[slot as usize];
        self.join(newer, older);
    }

    /// Makes two items neighbours; no item stands for the end of the list.
    fn join(&mut self, newer: u32, older: u32) {
        match self.items.get_mut(newer as usize) {
            Some(item) => item.older = older,
            None => self.newest = older,
        }
        match self.items.get_mut(older as usize) {
            Some(item) => item.newer = newer,
            None => self.oldest = newer,
        }
    }
}
