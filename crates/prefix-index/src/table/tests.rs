use super::{MIN_HOMES, Table};
use crate::PodId;
use crate::postings::{Holder, Posting};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Op {
    Insert(u64),
    Remove(u64),
    /// Removes this many of the least hashes.
    Drain(usize),
}

/// Hashes that spread, that crowd one home, and that crowd the last one.
fn hash() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        2 => (0u64..40).prop_map(|n| (1 << 63) + n),
        2 => (0u64..40).prop_map(|n| u64::MAX - n),
        1 => 0u64..40,
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => hash().prop_map(Op::Insert),
        10 => hash().prop_map(Op::Remove),
        1 => (0usize..300).prop_map(Op::Drain),
    ]
}

fn posting(hash: u64, slot: u32) -> Posting {
    Posting {
        hash,
        holder: Holder {
            pod: PodId(0),
            slot,
        },
    }
}

fn remove(table: &mut Table, hash: u64) -> bool {
    let found = table.find(hash);
    found.is_ok_and(|at| {
        table.remove_at(at);
        true
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn same_as_a_sorted_map(ops in prop::collection::vec(op(), 1..900)) {
        let (mut table, mut map) = (Table::default(), BTreeMap::new());
        for (slot, op) in (0..).zip(ops) {
            match op {
                Op::Insert(hash) => {
                    table.reserve_one();
                    match table.find(hash) {
                        Ok(at) => table.holder_mut(at).slot = slot,
                        Err(at) => table.insert_at(at, posting(hash, slot)),
                    }
                    map.insert(hash, slot);
                }
                Op::Remove(hash) => prop_assert_eq!(remove(&mut table, hash), map.remove(&hash).is_some()),
                Op::Drain(count) => {
                    for hash in map.keys().copied().take(count).collect::<Vec<_>>() {
                        map.remove(&hash);
                        prop_assert!(remove(&mut table, hash));
                    }
                }
            }
        }
        table.check().expect("consistent");
        let held: Vec<_> = table.iter().map(|p| (p.hash, p.holder.slot)).collect();
        prop_assert_eq!(held, map.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn memory_follows_the_number_of_postings_both_ways() {
    let mut table = Table::default();
    let hashes: Vec<_> = (0..10_000).map(|n| PodId(n).rank(1)).collect();
    for (n, &hash) in hashes.iter().enumerate() {
        table.reserve_one();
        let at = table.find(hash).expect_err("new");
        table.insert_at(at, posting(hash, 0));
        assert!(
            table.slots.capacity() <= (n + 1) * 100 / 56 + 2 * MIN_HOMES,
            "{} slots for {n}",
            table.slots.capacity()
        );
    }
    for (left, &hash) in (0..hashes.len()).rev().zip(&hashes) {
        assert!(remove(&mut table, hash));
        assert!(
            table.slots.capacity() <= left * 100 / 28 + 3 * MIN_HOMES,
            "{} slots for {left}",
            table.slots.capacity()
        );
    }
}
