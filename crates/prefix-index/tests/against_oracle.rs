//! Random operations on the index and on a brute-force model of it must give the same answers.

mod common;

use common::{Oracle, hashes};
use prefix_index::{PodId, PrefixIndex};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Admit(u32),
    Forget(u32),
    Record(u32, String),
    Look {
        text: String,
        candidates: Vec<u32>,
        k: usize,
        draw: u64,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let pod = 0u32..7;
    // Three letters: most texts share their first blocks with some that were recorded before.
    let text = "[ab]{0,3}[abc]{0,9}";
    let candidates =
        prop::collection::btree_set(0u32..8, 0..8).prop_map(|set| set.into_iter().collect());
    prop_oneof![
        2 => pod.clone().prop_map(Op::Admit),
        1 => pod.clone().prop_map(Op::Forget),
        8 => (pod, text).prop_map(|(pod, text)| Op::Record(pod, text)),
        6 => (text, candidates, 0usize..7, any::<u64>())
            .prop_map(|(text, candidates, k, draw)| Op::Look { text, candidates, k, draw }),
    ]
}

fn run(capacity: usize, ops: Vec<Op>) {
    let index = PrefixIndex::new(capacity);
    let mut oracle = Oracle::new(capacity);
    for pod in 0..4 {
        index.admit(PodId(pod));
        oracle.admit(PodId(pod));
    }
    for op in ops {
        match op {
            Op::Admit(pod) => {
                index.admit(PodId(pod));
                oracle.admit(PodId(pod));
            }
            Op::Forget(pod) => assert_eq!(index.forget(PodId(pod)), oracle.forget(PodId(pod))),
            Op::Record(pod, text) => {
                let hashes = hashes(&text);
                assert_eq!(
                    index.record(PodId(pod), &hashes),
                    oracle.record(PodId(pod), &hashes),
                    "{text}"
                );
            }
            Op::Look {
                text,
                candidates,
                k,
                draw,
            } => {
                let hashes = hashes(&text);
                let pods: Vec<_> = candidates.into_iter().map(PodId).collect();
                let mut out = vec![u32::MAX; pods.len()];
                let best = index.longest_matches(&hashes, &pods, k, draw, &mut out);
                oracle.judge(&hashes, &pods, k, &out, best);
            }
        }
        assert_eq!(index.len(), oracle.len());
        for pod in (0..8).map(PodId) {
            assert_eq!(index.oldest_first(pod), oracle.oldest_first(pod));
        }
        index.check_invariants().expect("consistent");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn same_as_the_oracle(capacity in 0usize..30, ops in prop::collection::vec(op(), 1..60)) {
        run(capacity, ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Long prompts, many blocks between the places where the holders change; and few holders among many candidates
    /// as well as many holders and few candidates.
    #[test]
    fn same_as_the_oracle_for_long_prompts_and_many_pods(
        shared in prop::collection::vec(0usize..130, 1..5),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0u32..40), 1..50),
        single in (0usize..130, 0u32..40),
        candidates in prop_oneof![
            prop::collection::btree_set(0u32..42, 0..4),
            prop::collection::btree_set(0u32..3, 1..3),
            prop::collection::btree_set(0u32..42, 20..42),
        ],
        look in 1usize..130,
        k in 1usize..8,
        draw in any::<u64>(),
    ) {
        let text: String = (0..130).map(|i| char::from(b'a' + (i * i % 23) as u8)).collect();
        let (index, mut oracle) = (PrefixIndex::new(1000), Oracle::new(1000));
        for pod in (0..40).map(PodId) {
            index.admit(pod);
            oracle.admit(pod);
        }
        let cuts = cuts.into_iter().map(|(at, pod)| (*at.get(&shared), pod));
        for (cut, pod) in cuts.chain([single]) {
            let hashes = hashes(&text[..cut]);
            index.record(PodId(pod), &hashes);
            oracle.record(PodId(pod), &hashes);
        }
        let (hashes, pods) = (hashes(&text[..look]), candidates.into_iter().map(PodId).collect::<Vec<_>>());
        let mut out = vec![0; pods.len()];
        let best = index.longest_matches(&hashes, &pods, k, draw, &mut out);
        oracle.judge(&hashes, &pods, k, &out, best);
        index.check_invariants().expect("consistent");
    }
}
