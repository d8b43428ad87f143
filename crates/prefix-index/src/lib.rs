//! Which pods were recently sent how much of this prompt.
//!
//! Three parts, each usable alone:
//!
//! - [`Chain`] cuts a prompt into blocks and hashes each with the hash of the block before it, so that one `u64` stands
//!   for "this model and everything up to the end of this block".
//! - [`PrefixIndex`] remembers, per pod, the block hashes that were recently sent there: one LRU list per pod, and one
//!   map from block hash to the pods that hold it.
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
//! The whole index is a plain struct behind one reader-writer lock. A look-up holds it for about a microsecond and a
//! record for some ten, out of a request that takes milliseconds to seconds, so it is idle almost always; and every
//! look-up sees one moment of the whole index, which sharded locks or lock-free maps would have to argue for. The two
//! operations that could hold it for long are cut up: the map grows in 64 independent parts, and forgetting a pod lets
//! waiting requests pass every few hundred entries.

mod chain;
mod index;
mod inspect;
mod lookup;
mod lru;
mod pod;
mod postings;
mod table;

pub use chain::{Chain, Hashes};
pub use index::{PrefixIndex, Recorded};
pub use pod::PodId;
