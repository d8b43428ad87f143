//! Random bits for weighted choices, ties and request ids. Not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    // RandomState carries the operating system's randomness, different for each thread.
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8));
}

/// 64 random bits: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[must_use]
pub fn bits() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mut z = next;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// A new request id: a UUID of version 4.
#[must_use]
pub fn request_id() -> uuid::Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&bits().to_ne_bytes());
    bytes[8..].copy_from_slice(&bits().to_ne_bytes());
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
