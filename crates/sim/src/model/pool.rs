//! The KV cache: blocks of tokens, shared by hash, recycled in the order of their last use.
//!
//! Invariants (`tests/pool.rs` holds them against a brute force):
//! - **A block is either referenced by a sequence or in the free list**, never both.
//! - A free block keeps its content, and can be found by its hash, until it is handed out again.
//! - Free blocks are handed out least recently released first; those without a hash before all others.
//! - A sequence's blocks are released tail first, so a prompt loses its end before its beginning.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// One block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockId(u32);

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Block {
    refs: u32,
    hash: Option<u64>,
    /// Neighbours in the free list.
    before: u32,
    after: u32,
}

/// A block's hash is spread well enough to be a map's hash.
#[derive(Clone, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A fixed number of KV blocks.
#[derive(Clone, Debug)]
pub struct BlockPool {
    blocks: Vec<Block>,
    by_hash: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    /// Ends of the free list: `oldest` is handed out next.
    oldest: u32,
    newest: u32,
    free: usize,
    evictions: u64,
}

impl BlockPool {
    /// A pool of `size` empty blocks.
    ///
    /// # Panics
    /// If `size` does not fit in 32 bits.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let size = u32::try_from(size).expect("a pool has fewer than 2^32 blocks");
        let mut pool = Self {
            blocks: vec![
                Block {
                    refs: 0,
                    hash: None,
                    before: NONE,
                    after: NONE
                };
                size as usize
            ],
            by_hash: HashMap::default(),
            oldest: NONE,
            newest: NONE,
            free: 0,
            evictions: 0,
        };
        for id in 0..size {
            pool.push_newest(id);
        }
        pool
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether the pool has no block at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks that no sequence references.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free
    }

    /// Blocks that sequences reference.
    #[must_use]
    pub fn used(&self) -> usize {
        self.blocks.len() - self.free
    }

    /// Blocks that can be found by their hash.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.by_hash.len()
    }

    /// Cached blocks whose content was dropped to hand them out again.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The cached blocks of the longest cached prefix of `hashes`, without taking them.
    pub fn lookup(&self, hashes: &[u64]) -> impl Iterator<Item = BlockId> {
        hashes
            .iter()
            .map_while(|hash| self.by_hash.get(hash).copied())
            .map(BlockId)
    }

    /// Whether no sequence references this block, so that taking it uses up one free block.
    #[must_use]
    pub fn is_free(&self, id: BlockId) -> bool {
        self.blocks[id.0 as usize].refs == 0
    }

    /// Takes a cached block once more.
    pub fn take(&mut self, id: BlockId) {
        if self.is_free(id) {
            self.unlink(id.0);
        }
        self.blocks[id.0 as usize].refs += 1;
    }

    /// Hands out an empty block; `None` when every block is referenced. Its earlier content is forgotten.
    pub fn allocate(&mut self) -> Option<BlockId> {
        let id = self.oldest;
        if id == NONE {
            return None;
        }
        self.unlink(id);
        let block = &mut self.blocks[id as usize];
        block.refs = 1;
        if let Some(hash) = block.hash.take() {
            self.by_hash.remove(&hash);
            self.evictions += 1;
        }
        Some(BlockId(id))
    }

    /// Says that this block now holds the content of `hash`. When another block already does, this one stays anonymous.
    pub fn fill(&mut self, id: BlockId, hash: u64) {
        if let Entry::Vacant(entry) = self.by_hash.entry(hash) {
            entry.insert(id.0);
            self.blocks[id.0 as usize].hash = Some(hash);
        }
    }

    /// Gives back the blocks of one sequence, in their order.
    pub fn release(&mut self, ids: &[BlockId]) {
        for &BlockId(id) in ids.iter().rev() {
            let block = &mut self.blocks[id as usize];
            debug_assert!(
                block.refs > 0,
                "a block is released as often as it was taken"
            );
            block.refs = block.refs.saturating_sub(1);
            match (block.refs, block.hash) {
                (0, Some(_)) => self.push_newest(id),
                (0, None) => self.push_oldest(id),
                _ => {}
            }
        }
    }

    /// Forgets all content. Refused (`false`) while any block is referenced, as the real engine does.
    pub fn reset(&mut self) -> bool {
        if self.used() > 0 {
            return false;
        }
        self.by_hash.clear();
        for block in &mut self.blocks {
            block.hash = None;
        }
        true
    }

    fn push_newest(&mut self, id: u32) {
        let last = self.newest;
        self.link(id, last, NONE);
    }

    fn push_oldest(&mut self, id: u32) {
        let first = self.oldest;
        self.link(id, NONE, first);
    }

    fn link(&mut self, id: u32, before: u32, after: u32) {
        self.blocks[id as usize].before = before;
        self.blocks[id as usize].after = after;
        match self.blocks.get_mut(before as usize) {
            Some(block) => block.after = id,
            None => self.oldest = id,
        }
        match self.blocks.get_mut(after as usize) {
            Some(block) => block.before = id,
            None => self.newest = id,
        }
        self.free += 1;
    }

    fn unlink(&mut self, id: u32) {
        let Block { before, after, .. } = self.blocks[id as usize];
        match self.blocks.get_mut(before as usize) {
            Some(block) => block.after = after,
            None => self.oldest = after,
        }
        match self.blocks.get_mut(after as usize) {
            Some(block) => block.before = before,
            None => self.newest = before,
        }
        self.free -= 1;
    }
}

/// The hash of every whole block of `tokens`, each over its tokens and the hash before it; `salt` starts the chain.
///
/// Continues an earlier chain when `done` holds the hashes of the first blocks already.
pub fn hash_blocks(tokens: &[u32], block_size: usize, salt: u64, done: &mut Vec<u64>) {
    if done.len() == tokens.len() / block_size {
        return;
    }
    let mut bytes = Vec::with_capacity(block_size * 4);
    for block in tokens.chunks_exact(block_size).skip(done.len()) {
        bytes.clear();
        bytes.extend(block.iter().flat_map(|token| token.to_le_bytes()));
        let parent = done.last().copied().unwrap_or(salt);
        done.push(xxh3_64_with_seed(&bytes, parent));
    }
}
