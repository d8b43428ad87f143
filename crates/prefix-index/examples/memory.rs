//! Resident memory per entry: 100 pods that hold 50,000 blocks each, of prompts that have no block in common.
//!
//! `cargo run --release -p prefix-index --example memory [BLOCKS]`: prompts of 125 blocks, or of as many. One block a
//! prompt is the worst case, each is a run of its own. Linux only: it reads `/proc/self/statm`.
#![allow(clippy::print_stdout, reason = "this program is for its output")]

use prefix_index::{PodId, PrefixIndex};

const PODS: u32 = 100;
const PER_POD: usize = 50_000;
const BLOCKS: usize = 125;
const PAGE_BYTES: u64 = 4096;

fn resident_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .ok_or("no resident pages in statm")?
        .parse()?;
    Ok(pages * PAGE_BYTES)
}

/// Block hashes that no other prompt has.
fn hashes(prompt: u64, blocks: usize) -> Vec<u64> {
    (0..blocks as u32)
        .map(|n| PodId(n).rank(prompt.wrapping_mul(0xD6E8_FEB8_6659_FD93)))
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let blocks = match std::env::args().nth(1) {
        Some(written) => written.parse()?,
        None => BLOCKS,
    };
    let before = resident_bytes()?;
    let index = PrefixIndex::new(PER_POD);
    (0..PODS).for_each(|pod| index.admit(PodId(pod)));
    let mut prompt = 0;
    let mut fill = |records: usize| {
        for n in 0..records {
            prompt += 1;
            index.record(PodId(n as u32 % PODS), &hashes(prompt, blocks));
        }
    };
    let report = |when: &str| -> Result<(), Box<dyn std::error::Error>> {
        let (resident, entries) = (resident_bytes()? - before, index.len());
        println!(
            "{when}: {entries} entries, {resident} bytes resident, {:.1} per entry",
            resident as f64 / entries as f64
        );
        Ok(())
    };
    for percent in [25, 50, 75, 100] {
        fill(PODS as usize * PER_POD / blocks / 4);
        report(&format!("{percent} % full"))?;
    }
    fill(20 * PODS as usize * PER_POD / blocks);
    report("after every entry was replaced 20 times")
}
