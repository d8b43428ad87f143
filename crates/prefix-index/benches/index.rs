//! Costs of the three operations of a request: hash, look-up, record.
//!
//! The index holds 100 pods with 50,000 entries each, far more than the CPU's caches, and every iteration uses another
//! prompt, so the figures are those of cold memory.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use prefix_index::{Chain, Hashes, PodId, PrefixIndex};
use std::hint::black_box;

const PODS: u32 = 100;
const PER_POD: usize = 50_000;
const BLOCKS: usize = 128;
const PROMPTS_PER_POD: u64 = (PER_POD / BLOCKS) as u64;

/// Hashes of a prompt that starts with `shared` blocks of a system prompt and goes on on its own.
fn prompt(seed: u64, shared: usize) -> Hashes {
    let mut chain = Chain::new("model", 64, BLOCKS);
    let _ = chain.push(&vec![7; 64 * shared]);
    let mut own = seed.to_le_bytes().to_vec();
    own.resize(64 * (BLOCKS - shared), 1);
    let _ = chain.push(&own);
    chain.finish()
}

/// All pods full, each with its own prompts, after a common prefix of `shared` blocks.
fn full(shared: usize) -> PrefixIndex {
    let index = PrefixIndex::new(PER_POD);
    let prompts = PER_POD / (BLOCKS - shared) + 1;
    for pod in 0..PODS {
        index.admit(PodId(pod));
        for n in 0..prompts as u64 {
            index.record(PodId(pod), &prompt(u64::from(pod) << 32 | n, shared));
        }
    }
    index
}

/// Small steps that visit all values: every iteration meets another prompt.
fn walk(n: &mut u64, modulus: u64) -> u64 {
    *n = (*n + 7919) % modulus;
    *n
}

fn hash(c: &mut Criterion) {
    let text: Vec<u8> = (0..8192).map(|i| (i % 251) as u8).collect();
    c.bench_function("hash 8 KiB into 128 blocks", |b| {
        b.iter(|| {
            let mut chain = Chain::new("model", 64, BLOCKS);
            let _ = chain.push(black_box(&text));
            chain.finish()
        });
    });
}

fn look_up(c: &mut Criterion, name: &str, index: &PrefixIndex, prompts: &[Hashes]) {
    let pods: Vec<_> = (0..PODS).map(PodId).collect();
    let mut out = vec![0; pods.len()];
    let mut n = 0;
    c.bench_function(name, |b| {
        b.iter(|| {
            let hashes = &prompts[walk(&mut n, prompts.len() as u64) as usize];
            index.longest_matches(hashes, &pods, 5, n, &mut out)
        });
    });
}

fn benches(c: &mut Criterion) {
    hash(c);
    let index = full(0);
    // The last prompts of each pod: none of them was evicted.
    let held = |pod: u32, n: u64| prompt(u64::from(pod) << 32 | (1 + n % (PROMPTS_PER_POD - 1)), 0);
    let hits: Vec<_> = (0..20_000u64)
        .map(|n| held((n % 100) as u32, n / 100))
        .collect();
    look_up(c, "look up: one pod has all of it", &index, &hits);
    let misses: Vec<_> = (0..20_000).map(|n| prompt(u64::MAX - n, 0)).collect();
    look_up(c, "look up: nobody has any of it", &index, &misses);

    let (mut n, mut fresh) = (0, 1 << 60);
    c.bench_function("record: 128 new blocks, list full", |b| {
        b.iter_batched_ref(
            || {
                fresh += 1;
                prompt(fresh, 0)
            },
            |hashes| index.record(PodId((walk(&mut n, 100)) as u32), hashes),
            BatchSize::SmallInput,
        );
    });
    drop(index);

    let index = full(0);
    c.bench_function("record: 128 known blocks", |b| {
        b.iter(|| {
            let n = walk(&mut n, hits.len() as u64);
            index.record(PodId((n % 100) as u32), &hits[n as usize])
        });
    });
    drop(index);

    let index = full(64);
    let half: Vec<_> = (0..20_000).map(|n| prompt(u64::MAX - n, 64)).collect();
    look_up(c, "look up: all 100 pods have half of it", &index, &half);
    let one: Vec<_> = (0..20_000u64)
        .map(|n| prompt((n % 100) << 32 | (2 + n / 100 % 700), 64))
        .collect();
    look_up(c, "look up: one pod has all, all have half", &index, &one);
}

criterion_group!(group, benches);
criterion_main!(group);
