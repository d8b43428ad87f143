//! Which pods were recently sent how much of this prompt.
//!
//! Three parts, each usable alone:
//!
//! - [`Chain`] cuts a prompt into blocks and hashes each with the hash of the block before it, so that one `u64` stands
//!   for "this model and everything up to the end of this block".
//! - [`PrefixIndex`] remembers, per pod, the blocks that were recently sent there: one tree of all prompts, in which blocks
//!   that are always sent together are one run, and for each pod one LRU list of the runs that it holds.
//! - [`PrefixIndex::longest_matches`] answers which pods hold the longest part of a prompt.
//!
//! # Invariants
//!
//! - **Bounded**: a pod never keeps more entries than its capacity, and a pod that was forgotten keeps none.
//! - **Prefix-closed**: a pod that holds block n of a chain holds all blocks before n. Recording makes the head of a
//!   prompt more recently used than its tail, so eviction takes the tail first. The look-up relies on it.
//! - **Pure**: no IO, no clock, no randomness. Where the choice among equals is free the caller brings random bits.
//!
//! # Why one lock
//!
//! The whole index is a plain struct behind one reader-writer lock. A look-up or a record holds it for a microsecond or
//! two, out of a request that takes milliseconds to seconds, so it is idle almost always; and every look-up sees one
//! moment of the whole index, which sharded locks or lock-free maps would have to argue for. The operations that could
//! hold it for long are cut up: maps and slabs grow in small parts, and forgetting a pod lets waiting requests pass every
//! few hundred entries.

mod chain;
mod index;
mod inspect;
mod lookup;
mod lru;
mod pod;
mod slab;
mod tree;

pub use chain::{Chain, Hashes};
pub use index::{PrefixIndex, Recorded};
pub use inspect::{Occupancy, SharedPrefix};
pub use pod::PodId;
