//! Threads that record, look up, admit and forget at the same time leave a consistent index behind.

mod common;

use common::hashes;
use prefix_index::{PodId, PrefixIndex};
use std::collections::HashSet;
use std::thread;

const PODS: u32 = 6;
const CAPACITY: usize = 1500;
const ROUNDS: u64 = 300;

/// A prompt of up to 700 blocks that shares a prefix with others of the same seed modulo 5.
fn prompt(seed: u64) -> String {
    let shared = char::from(b'a' + (seed % 5) as u8)
        .to_string()
        .repeat(40 + 100 * (seed % 4) as usize);
    format!("{shared}{}", "xyz".repeat((seed % 110) as usize))
}

#[test]
fn threads_leave_a_consistent_prefix_closed_index() {
    let index = PrefixIndex::new(CAPACITY);
    (0..PODS).for_each(|pod| index.admit(PodId(pod)));
    let pods: Vec<_> = (0..PODS).map(PodId).collect();
    thread::scope(|scope| {
        for worker in 0..3 {
            let index = &index;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let seed = round * 7 + worker;
                    index.record(
                        PodId((seed % u64::from(PODS)) as u32),
                        &hashes(&prompt(seed)),
                    );
                    assert!(index.len() <= PODS as usize * CAPACITY);
                }
            });
        }
        scope.spawn(|| {
            for round in 0..ROUNDS {
                let hashes = hashes(&prompt(round));
                let mut out = vec![0; pods.len()];
                let best = index.longest_matches(&hashes, &pods, 3, round, &mut out);
                assert_eq!(out.iter().max(), Some(&best));
                assert!(out.iter().filter(|&&m| m > 0).count() <= 3);
            }
        });
        // Pods that go and come back, while others record for them.
        for worker in 0..2 {
            let index = &index;
            scope.spawn(move || {
                for round in 0..ROUNDS / 3 {
                    let pod = PodId(((round + worker) % 2) as u32);
                    index.forget(pod);
                    index.admit(pod);
                }
            });
        }
    });
    index.check_invariants().expect("consistent");
    assert!(!index.is_empty());
    for &pod in &pods {
        let all: HashSet<_> = index.oldest_first(pod).into_iter().collect();
        for seed in 0..ROUNDS * 2 {
            let hashes = hashes(&prompt(seed));
            let held = hashes.iter().take_while(|h| all.contains(*h)).count();
            assert!(
                hashes[held..].iter().all(|h| !all.contains(h)),
                "{pod:?} has a gap in prompt {seed}"
            );
        }
    }
    for &pod in &pods {
        index.forget(pod);
    }
    assert!(index.is_empty());
    pods.iter()
        .for_each(|&pod| assert_eq!(index.record(pod, &hashes("late")).added, 0));
    index.check_invariants().expect("consistent");
}
