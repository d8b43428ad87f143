//! What the look inside shows.

use prefix_index::{Chain, Hashes, Occupancy, PodId, PrefixIndex, SharedPrefix};

fn hashes(text: &str) -> Hashes {
    let mut chain = Chain::new("m", 1, 1000);
    let _ = chain.push(text.as_bytes());
    chain.finish()
}

/// An index whose pods were sent these texts, a block a byte.
fn index(capacity: usize, sent: &[(u32, &str)]) -> PrefixIndex {
    let index = PrefixIndex::new(capacity);
    for (pod, text) in sent {
        index.admit(PodId(*pod));
        index.record(PodId(*pod), &hashes(text));
    }
    index
}

#[test]
fn how_full_each_list_is() {
    let index = index(6, &[(0, "abcd"), (1, "xy"), (0, "efgh")]);
    let mut lists = index.occupancy();
    lists.sort_by_key(|list| list.pod);
    let list = |pod, entries, evictions| Occupancy {
        pod: PodId(pod),
        entries,
        evictions,
    };
    assert_eq!(lists, [list(0, 6, 2), list(1, 2, 0)]);
    assert_eq!((index.capacity(), index.evictions()), (6, 2));
    index.forget(PodId(0));
    assert_eq!(index.evictions(), 2, "a pod that goes is no eviction");
    assert_eq!(index.occupancy(), [list(1, 2, 0)]);
}

#[test]
fn what_is_shared_most() {
    let sent = [
        (0, "system one"),
        (1, "system two"),
        (0, "system other"),
        (2, "alone"),
    ];
    let index = index(1000, &sent);
    let prefix = |text: &str, pods, head: &str| SharedPrefix {
        hash: *hashes(text).last().unwrap(),
        blocks: text.len(),
        pods,
        head: *hashes(head).last().unwrap(),
    };
    let all = [prefix("system ", 2, "sys"), prefix("system o", 1, "sys")];
    assert_eq!(index.shared_prefixes(9, 3), all);
    assert_eq!(index.shared_prefixes(1, 3), all[..1]);
    let whole = index.shared_prefixes(9, 1000);
    assert_eq!(whole[0].head, whole[0].hash, "shorter than its head");
    assert_eq!(index.shared_prefixes(9, 8)[1].head, whole[1].hash);
    index.forget(PodId(0));
    assert_eq!(
        index.shared_prefixes(9, 3),
        [],
        "each of one pod and one prompt"
    );
}

#[test]
fn one_prompt_on_two_pods_is_shared_as_a_whole() {
    let index = index(1000, &[(0, "abc"), (1, "abc"), (1, "abcdef")]);
    let found = index.shared_prefixes(9, 1);
    let lengths: Vec<_> = found.iter().map(|p| (p.blocks, p.pods)).collect();
    assert_eq!(lengths, [(3, 2)], "what one of them has beyond is its own");
    assert_eq!(found[0].hash, hashes("abc")[2]);
    assert_eq!(found[0].head, hashes("a")[0]);
}

#[test]
fn all_runs_are_looked_at() {
    let index = PrefixIndex::new(1 << 20);
    index.admit(PodId(0));
    for n in 0..5000 {
        index.record(PodId(0), &hashes(&format!("{n:04}")));
    }
    index.admit(PodId(1));
    index.record(PodId(1), &hashes("4999"));
    let found = index.shared_prefixes(4, 1);
    let lengths: Vec<_> = found.iter().map(|p| (p.blocks, p.pods)).collect();
    assert_eq!(lengths, [(3, 2), (2, 2), (1, 2), (4, 2)]);
}
