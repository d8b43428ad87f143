//! Memory follows what is held, both ways.

use super::PrefixIndex;
use crate::PodId;

const CAPACITY: usize = 1000;

/// A prompt of one block that no other has: each is a run of its own.
fn prompt(number: u32) -> [u64; 1] {
    [PodId(number).rank(7)]
}

#[test]
fn entries_that_come_and_go_take_the_places_of_those_before() {
    let index = PrefixIndex::new(CAPACITY);
    index.admit(PodId(0));
    for number in 0..50 * CAPACITY as u32 {
        index.record(PodId(0), &prompt(number));
    }
    let state = index.state.read();
    // One more than fits is there for a moment, before the oldest one goes.
    assert_eq!(state.tree.places(), CAPACITY + 1);
}

#[test]
fn a_fleet_that_shrank_does_not_keep_the_memory_of_the_large_one() {
    let index = PrefixIndex::new(50 * CAPACITY);
    index.admit(PodId(0));
    for number in 0..50 * CAPACITY as u32 {
        index.record(PodId(0), &prompt(number));
    }
    let links = || index.state.read().tree.link_capacity();
    assert!(links() >= 50 * CAPACITY, "{}", links());
    index.forget(PodId(0));
    // A map of a few is as small as it gets, and there are 1024 of them.
    assert!(links() <= 1024 * 7, "{}", links());
}

#[test]
fn a_prefix_that_most_pods_lost_has_room_for_the_rest_only() {
    let index = PrefixIndex::new(CAPACITY);
    let hashes = [1, 2, 3];
    for pod in (0..100).map(PodId) {
        index.admit(pod);
        index.record(pod, &hashes);
    }
    (1..100).map(PodId).for_each(|pod| {
        index.forget(pod);
    });
    let state = index.state.read();
    let (_, run) = state.tree.runs.iter().next().expect("it is held");
    assert_eq!(run.holders.len(), 1);
    assert!(run.holders.capacity() <= 4, "{}", run.holders.capacity());
}
