//! One operation of the index, a number of times, for `cargo run -p xtask -- icount` to count its instructions.
//!
//! `icount_prefix_index OPERATION TIMES`: the operations are `hash`, `look-up`, `hash+look-up` and `record`, each for a prompt of
//! 8 KiB in 128 blocks, beside 16 pods that hold 100 prompts each after a system prompt of 2 KiB that all have.

use prefix_index::{Chain, Hashes, PodId, PrefixIndex};
use std::hint::black_box;

const PODS: u32 = 16;
const PROMPTS: u32 = 100;
const BLOCK_BYTES: usize = 64;
const BLOCKS: usize = 128;
const SHARED: usize = 2048;

fn text(pod: u32, prompt: u32) -> Vec<u8> {
    let mut text = vec![b'.'; BLOCK_BYTES * BLOCKS];
    text[SHARED..SHARED + 8]
        .copy_from_slice(&(u64::from(pod) << 32 | u64::from(prompt)).to_le_bytes());
    text
}

fn hash(text: &[u8]) -> Hashes {
    let mut chain = Chain::new("model", BLOCK_BYTES, BLOCKS);
    let _ = chain.push(text);
    chain.finish()
}

fn main() -> Result<(), &'static str> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [operation, times] = &args[..] else {
        return Err("usage: icount_prefix_index OPERATION TIMES");
    };
    let times: u32 = times.parse().map_err(|_| "TIMES is a number")?;
    let index = PrefixIndex::new(BLOCKS * PROMPTS as usize);
    let pods: Vec<_> = (0..PODS).map(PodId).collect();
    for pod in &pods {
        index.admit(*pod);
        for prompt in 0..PROMPTS {
            index.record(*pod, &hash(&text(pod.0, prompt)));
        }
    }
    let prompts: Vec<_> = (0..64).map(|n| text(n % PODS, n)).collect();
    let hashes: Vec<_> = prompts.iter().map(|text| hash(text)).collect();
    let mut out = vec![0; pods.len()];
    for n in 0..times {
        let i = n as usize % prompts.len();
        match operation.as_str() {
            "hash" => drop(black_box(hash(&prompts[i]))),
            "look-up" => {
                black_box(index.longest_matches(&hashes[i], &pods, 5, u64::from(n), &mut out));
            }
            "hash+look-up" => {
                black_box(index.longest_matches(
                    &hash(&prompts[i]),
                    &pods,
                    5,
                    u64::from(n),
                    &mut out,
                ));
            }
            "record" => {
                black_box(index.record(PodId(n % PODS), &hashes[i]));
            }
            _ => return Err("no such operation"),
        }
    }
    Ok(())
}
