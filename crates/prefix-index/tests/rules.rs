//! The rules of the specification, one by one.

mod common;

use common::hashes;
use prefix_index::{PodId, PrefixIndex, Recorded};
use std::collections::BTreeMap;

fn index(capacity: usize, pods: u32) -> PrefixIndex {
    let index = PrefixIndex::new(capacity);
    (0..pods).for_each(|pod| index.admit(PodId(pod)));
    index
}

fn record_all(index: &PrefixIndex, pods: u32, text: &str) {
    for pod in 0..pods {
        index.record(PodId(pod), &hashes(text));
    }
}

fn look(index: &PrefixIndex, text: &str, pods: &[u32], k: usize, draw: u64) -> Vec<u32> {
    let pods: Vec<_> = pods.iter().copied().map(PodId).collect();
    let mut out = vec![9; pods.len()];
    index.longest_matches(&hashes(text), &pods, k, draw, &mut out);
    out
}

#[test]
fn c1_pods_that_are_no_candidates_take_no_place() {
    let index = index(100, 4);
    for (pod, text) in [(0, "abcdef"), (1, "abcdef"), (2, "abc"), (3, "ab")] {
        index.record(PodId(pod), &hashes(text));
    }
    assert_eq!(look(&index, "abcdef", &[2, 3], 2, 0), [3, 2]);
    assert_eq!(look(&index, "abcdef", &[2, 3], 1, 0), [3, 0]);
}

#[test]
fn c2_the_first_hit_from_the_end_is_the_longest_match() {
    let index = index(100, 2);
    index.record(PodId(0), &hashes("abcd"));
    index.record(PodId(1), &hashes("abxy"));
    assert_eq!(look(&index, "abcdef", &[0, 1], 5, 0), [4, 2]);
    assert_eq!(
        look(&index, "zabcd", &[0, 1], 5, 0),
        [0, 0],
        "i4: a changed start breaks everything after it"
    );
}

#[test]
fn c5_longer_matches_take_the_places_first() {
    let index = index(100, 5);
    for (pod, text) in ["a", "abcde", "abc", "abcd", "ab"].iter().enumerate() {
        index.record(PodId(pod as u32), &hashes(text));
    }
    assert_eq!(
        look(&index, "abcde", &[0, 1, 2, 3, 4], 3, 0),
        [0, 5, 3, 4, 0]
    );
}

#[test]
fn c6_equal_matches_win_equally_often() {
    let index = index(100, 10);
    record_all(&index, 10, "shared");
    let pods: Vec<_> = (0..10).collect();
    let mut wins: BTreeMap<usize, u32> = BTreeMap::new();
    for draw in 0..10_000 {
        let out = look(&index, "shared", &pods, 3, draw);
        assert_eq!(out.iter().filter(|&&m| m == 6).count(), 3);
        out.iter()
            .enumerate()
            .filter(|(_, m)| **m > 0)
            .for_each(|(pod, _)| *wins.entry(pod).or_default() += 1);
    }
    // Expected 3000 each; 200 are more than four standard deviations.
    assert!(
        wins.len() == 10 && wins.values().all(|w| (2800..3200).contains(w)),
        "{wins:?}"
    );
}

#[test]
fn c6_the_same_draw_gives_the_same_winners() {
    let index = index(100, 10);
    record_all(&index, 10, "shared");
    let pods: Vec<_> = (0..10).collect();
    assert_eq!(
        look(&index, "shared", &pods, 3, 42),
        look(&index, "shared", &pods, 3, 42)
    );
}

#[test]
fn d7_a_record_for_a_deleted_pod_leaves_nothing() {
    let index = index(100, 1);
    index.record(PodId(0), &hashes("abc"));
    assert_eq!(index.forget(PodId(0)), 3);
    assert_eq!(index.record(PodId(0), &hashes("abc")), Recorded::default());
    assert_eq!(
        index.record(PodId(77), &hashes("abc")),
        Recorded::default(),
        "never admitted"
    );
    assert!(index.is_empty());
    assert_eq!(look(&index, "abc", &[0, 77], 5, 0), [0, 0]);
    index.check_invariants().expect("consistent");
}

#[test]
fn e1_every_pod_has_its_own_list() {
    let index = index(3, 2);
    index.record(PodId(0), &hashes("abc"));
    index.record(PodId(1), &hashes("abc"));
    assert_eq!(index.len(), 6);
    index.record(PodId(0), &hashes("xyz"));
    assert_eq!(look(&index, "abc", &[0, 1], 5, 0), [0, 3]);
}

#[test]
fn e2_a_full_list_drops_the_least_recently_used() {
    let index = index(5, 1);
    index.record(PodId(0), &hashes("abc"));
    assert_eq!(
        index.record(PodId(0), &hashes("xyz")),
        Recorded {
            added: 3,
            refreshed: 0,
            evicted: 1
        }
    );
    assert_eq!(look(&index, "abc", &[0], 5, 0), [2]);
    assert_eq!(look(&index, "xyz", &[0], 5, 0), [3]);
    let longer_than_the_list = Recorded {
        added: 8,
        refreshed: 0,
        evicted: 8,
    };
    assert_eq!(
        index.record(PodId(0), &hashes("ABCDEFGH")),
        longer_than_the_list
    );
    assert_eq!(look(&index, "ABCDEFGH", &[0], 5, 0), [5]);
}

#[test]
fn e3_known_blocks_are_refreshed_and_the_tail_goes_first() {
    let index = index(6, 1);
    index.record(PodId(0), &hashes("abcd"));
    assert_eq!(
        index.record(PodId(0), &hashes("abxy")),
        Recorded {
            added: 2,
            refreshed: 2,
            evicted: 0
        }
    );
    assert_eq!(
        index.record(PodId(0), &hashes("q")),
        Recorded {
            added: 1,
            refreshed: 0,
            evicted: 1
        }
    );
    assert_eq!(
        look(&index, "abcd", &[0], 5, 0),
        [3],
        "the tail of the oldest prompt went"
    );
    assert_eq!(look(&index, "abxy", &[0], 5, 0), [4]);
}

#[test]
fn e4_forgetting_takes_all_entries_of_that_pod_only() {
    // More than one step of the removal.
    let index = index(5000, 3);
    let long = "ab".repeat(1500);
    record_all(&index, 3, &long);
    assert_eq!(index.forget(PodId(1)), 3000);
    assert_eq!(index.forget(PodId(1)), 0);
    assert_eq!(index.len(), 6000);
    assert_eq!(look(&index, &long, &[0, 1, 2], 5, 0), [3000, 0, 3000]);
    index.check_invariants().expect("consistent");
}

#[test]
fn e5_entries_are_bounded_by_pods_times_capacity() {
    let index = index(7, 3);
    for round in 0..50 {
        for pod in 0..3 {
            index.record(PodId(pod), &hashes(&format!("{round} of {pod}")));
            assert!(index.len() <= 21);
        }
    }
    assert_eq!(index.len(), 21);
}

#[test]
fn an_empty_prompt_and_no_candidates_are_fine() {
    let index = index(7, 1);
    assert_eq!(index.record(PodId(0), &[]), Recorded::default());
    assert_eq!(look(&index, "", &[0], 5, 0), [0]);
    assert!(look(&index, "abc", &[], 5, 0).is_empty());
}

#[test]
fn a_block_is_what_it_is_only_at_its_place() {
    let index = index(7, 1);
    let three = Recorded {
        added: 3,
        refreshed: 0,
        evicted: 0,
    };
    assert_eq!(index.record(PodId(0), &[5, 6, 5]), three);
    let mut out = [0];
    index.longest_matches(&[6, 5], &[PodId(0)], 5, 0, &mut out);
    assert_eq!(out, [0], "a collision of hashes in another prompt");
    index.check_invariants().expect("consistent");
}

#[test]
fn absurd_capacity_allocates_nothing() {
    let index = index(usize::MAX, 1);
    index.record(PodId(0), &hashes("abc"));
    assert_eq!(index.len(), 3);
}

#[test]
fn first_and_last_pods_are_found_in_lists_of_any_length() {
    let all: Vec<_> = (0..30).collect();
    for holder in [0, 15, 29] {
        let index = index(100, 30);
        index.record(PodId(holder), &hashes("abc"));
        let found = look(&index, "abc", &all, 5, 0);
        assert_eq!((found[holder as usize], found.iter().sum::<u32>()), (3, 3));
        record_all(&index, 30, "abc");
        assert_eq!(look(&index, "abc", &[holder], 5, 0), [3]);
        assert_eq!(look(&index, "abc", &all, 30, 0), [3; 30]);
    }
}
