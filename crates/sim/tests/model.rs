//! The engine model against brute force: no block is lost, every hit is counted, time follows the roofline.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use sim::model::{
    BlockId, BlockPool, Engine, EngineParams, Event, FinishReason, InvalidParams, Rejected,
    RequestId, Submission,
};

fn small() -> EngineParams {
    EngineParams {
        block_size: 4,
        num_blocks: 17,
        max_model_len: 60,
        max_num_seqs: 4,
        max_num_batched_tokens: 16,
        ..EngineParams::datacentre_7b()
    }
}

fn request(id: u64, prompt: Vec<u32>, answer: usize) -> Submission {
    let answer = (0..answer as u32).map(|at| 1_000 + at).collect();
    Submission {
        id: RequestId(id),
        prompt,
        answer,
        finish: FinishReason::Length,
        salt: 0,
        transferred: false,
    }
}

/// Runs until nothing is left to do; gives the events and the time.
fn drain(engine: &mut Engine, mut now: f64) -> (Vec<Event>, f64) {
    let mut events = Vec::new();
    let mut without_token = 0;
    while let Some(duration) = engine.start_step(now) {
        assert!(duration > 0.0);
        now += duration;
        let before = events.len();
        engine.end_step(now, &mut events);
        without_token = if events.len() > before {
            0
        } else {
            without_token + 1
        };
        assert!(without_token < 100, "the engine makes no progress");
    }
    (events, now)
}

/// Cached tokens of a request served alone.
fn cached(engine: &mut Engine, prompt: &[u32]) -> usize {
    engine.submit(request(0, prompt.to_vec(), 1), 0.0).unwrap();
    drain(engine, 0.0).0[0].cached
}

#[test]
fn generated_tokens_are_cached_but_the_last() {
    // Recorded: 40 prompt and 70 generated tokens, sent back as one prompt of 110, hit 96 with blocks of 32.
    let params = EngineParams {
        block_size: 32,
        ..EngineParams::datacentre_7b()
    };
    let mut engine = Engine::new(params).unwrap();
    let first = request(0, (0..40).collect(), 70);
    let both: Vec<u32> = first.prompt.iter().chain(&first.answer).copied().collect();
    engine.submit(first, 0.0).unwrap();
    drain(&mut engine, 0.0);
    assert_eq!(cached(&mut engine, &both), 96);
}

#[test]
fn a_salt_separates_the_cache() {
    let mut engine = Engine::new(small()).unwrap();
    let prompt: Vec<u32> = (0..20).collect();
    assert_eq!(
        [cached(&mut engine, &prompt), cached(&mut engine, &prompt)],
        [0, 16]
    );
    engine
        .submit(
            Submission {
                salt: 9,
                ..request(0, prompt, 1)
            },
            0.0,
        )
        .unwrap();
    assert_eq!(drain(&mut engine, 0.0).0[0].cached, 0);
}

#[test]
fn a_long_prompt_is_computed_in_chunks_of_the_budget() {
    let mut engine = Engine::new(small()).unwrap();
    engine
        .submit(request(0, (0..40).collect(), 2), 0.0)
        .unwrap();
    let (events, _) = drain(&mut engine, 0.0);
    // 16 + 16 + 8 tokens, then one decode step.
    assert_eq!(engine.counters().steps, 4);
    assert_eq!(events.len(), 2);
}

#[test]
fn time_follows_the_roofline() {
    let params = EngineParams::datacentre_7b();
    let mut engine = Engine::new(params.clone()).unwrap();
    engine
        .submit(request(0, (0..3_000).collect(), 2), 10.0)
        .unwrap();
    let (events, end) = drain(&mut engine, 10.0);
    let prefill = 0.001 + 3_000.0 * 86e-6 + 3_000.0 * 3_001.0 / 2.0 * 3.4e-9;
    let decode = 0.001 + 0.0083 + 3_000.0 * 0.32e-6;
    assert!((events[0].after - prefill).abs() < 1e-9, "{events:?}");
    assert!((events[1].after - decode).abs() < 1e-9, "{events:?}");
    let (reason, timing) = events[1].finished.unwrap();
    assert_eq!(
        (reason, timing.prompt_tokens, timing.generated_tokens),
        (FinishReason::Length, 3_000, 2)
    );
    assert!((timing.total - (end - 10.0)).abs() < 1e-9 && timing.queue == 0.0);
    // The preset's plain figures: about 11,600 prompt tokens a second, 8 to 12 ms a token.
    assert!((0.0080..0.012).contains(&decode));
    assert!((10_000.0..12_000.0).contains(&(3_000.0 / prefill)));
}

#[test]
fn the_youngest_gives_way_when_blocks_run_out_and_all_finish() {
    let mut engine = Engine::new(small()).unwrap();
    // Two of 20 + 30 tokens need 13 blocks each at their ends; 16 exist.
    for id in 0..2 {
        engine
            .submit(
                request(id, (id as u32 * 100..id as u32 * 100 + 20).collect(), 30),
                0.0,
            )
            .unwrap();
    }
    let (events, _) = drain(&mut engine, 0.0);
    assert!(engine.counters().preemptions > 0);
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| event.finished.map(|(_, timing)| (event.id.0, timing)))
        .collect();
    assert_eq!(ends.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(
        (ends[0].1.preemptions, ends[1].1.preemptions > 0),
        (0, true)
    );
    assert_eq!(engine.pool().used(), 0);
    assert_eq!(events.len(), 60);
}

#[test]
fn what_cannot_be_served_is_refused() {
    let mut engine = Engine::new(EngineParams {
        max_num_queued_reqs: Some(1),
        ..small()
    })
    .unwrap();
    assert_eq!(
        engine.submit(request(0, vec![], 1), 0.0),
        Err(Rejected::Empty)
    );
    assert_eq!(
        engine.submit(request(0, vec![1; 50], 11), 0.0),
        Err(Rejected::TooLong {
            tokens: 61,
            limit: 60
        })
    );
    assert_eq!(engine.submit(request(0, vec![1; 50], 10), 0.0), Ok(()));
    assert_eq!(
        engine.submit(request(1, vec![1], 1), 0.0),
        Err(Rejected::QueueFull)
    );
    let pool = EngineParams {
        num_blocks: 15,
        ..small()
    };
    assert_eq!(
        Engine::new(pool).err(),
        Some(InvalidParams::PoolTooSmall {
            blocks: 15,
            needed: 16
        })
    );
    assert_eq!(
        Engine::new(EngineParams {
            block_size: 0,
            ..small()
        })
        .err(),
        Some(InvalidParams::Zero("block_size"))
    );
    let time = EngineParams {
        weight_read: f64::NAN,
        ..small()
    };
    assert_eq!(
        Engine::new(time).err(),
        Some(InvalidParams::Seconds("weight_read"))
    );
}

#[test]
fn a_reset_is_refused_while_a_sequence_runs() {
    let mut engine = Engine::new(small()).unwrap();
    let prompt: Vec<u32> = (0..20).collect();
    engine.submit(request(0, prompt.clone(), 1), 0.0).unwrap();
    engine.start_step(0.0).unwrap();
    assert!(!engine.reset_prefix_cache());
    drain(&mut engine, 1.0);
    assert!(engine.reset_prefix_cache());
    assert_eq!(
        (engine.pool().cached(), cached(&mut engine, &prompt)),
        (0, 0)
    );
}

/// What a test does to an engine.
#[derive(Clone, Debug)]
enum Act {
    Submit {
        family: u32,
        prompt: usize,
        answer: usize,
    },
    Step,
    AbortOldest,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..3_u32, 1..40_usize, 1..20_usize).prop_map(|(family, prompt, answer)| Act::Submit { family, prompt, answer }),
        6 => Just(Act::Step),
        1 => Just(Act::AbortOldest),
    ];
    proptest::collection::vec(act, 1..80)
}

proptest! {
    #[test]
    fn every_request_ends_and_no_block_is_lost(acts in acts()) {
        let mut engine = Engine::new(small()).unwrap();
        let (mut now, mut next, mut open) = (0.0, 0, Vec::new());
        let (mut aborted, mut events) = (HashSet::new(), Vec::new());
        let mut lengths = HashMap::new();
        for act in acts {
            match act {
                Act::Submit { family, prompt, answer } => {
                    let tokens = (0..prompt as u32).map(|at| family * 1_000 + at).collect();
                    engine.submit(request(next, tokens, answer), now).unwrap();
                    lengths.insert(next, (prompt, answer));
                    open.push(next);
                    next += 1;
                }
                Act::Step => {
                    if let Some(duration) = engine.start_step(now) {
                        now += duration;
                        engine.end_step(now, &mut events);
                    }
                }
                Act::AbortOldest => {
                    if let Some(&id) = open.first() {
                        // In the middle of a step when there is one.
                        let step = engine.start_step(now);
                        let ended = events.iter().any(|event: &Event| event.id.0 == id && event.finished.is_some());
                        prop_assert_eq!(engine.abort(RequestId(id)), !ended);
                        if !ended { aborted.insert(id); }
                        open.remove(0);
                        if let Some(duration) = step {
                            now += duration;
                            engine.end_step(now, &mut events);
                        }
                    }
                }
            }
            prop_assert!(engine.load().kv_usage <= 1.0);
        }
        events.extend(drain(&mut engine, now).0);
        prop_assert_eq!(engine.pool().used(), 0);
        prop_assert_eq!((engine.load().running, engine.load().waiting), (0, 0));
        for (id, (prompt, answer)) in lengths {
            let tokens: Vec<_> = events.iter().filter(|event| event.id.0 == id).collect();
            let ends = tokens.iter().filter(|event| event.finished.is_some()).count();
            prop_assert_eq!(ends, usize::from(!aborted.contains(&id)));
            prop_assert!(tokens.iter().enumerate().all(|(at, event)| event.index == at && event.after >= 0.0));
            if ends == 1 { prop_assert_eq!(tokens.len(), answer); }
            prop_assert!(tokens.iter().all(|event| event.cached < prompt && event.cached % 4 == 0));
        }
    }

    /// Without eviction, what a prompt hits is the longest whole-block prefix it shares with any earlier one.
    #[test]
    fn hits_are_the_longest_shared_prefix_of_whole_blocks(prompts in proptest::collection::vec(proptest::collection::vec(0..2_u32, 1..30), 1..12)) {
        let mut engine = Engine::new(EngineParams { num_blocks: 1_000, ..small() }).unwrap();
        let (mut seen, mut hits) = (Vec::<Vec<u32>>::new(), 0);
        for prompt in prompts {
            let shared = |other: &Vec<u32>| prompt.iter().zip(other).take_while(|(a, b)| a == b).count();
            let longest = seen.iter().map(shared).max().unwrap_or(0);
            let expected = longest.min(prompt.len() - 1) / 4 * 4;
            prop_assert_eq!(cached(&mut engine, &prompt), expected);
            hits += expected as u64;
            seen.push(prompt);
        }
        let queries: usize = seen.iter().map(Vec::len).sum();
        prop_assert_eq!((engine.counters().prefix_queries, engine.counters().prefix_hits), (queries as u64, hits));
    }

    /// The pool against a list in order of release and a map of reference counts.
    #[test]
    fn the_pool_hands_out_what_was_released_longest_ago(acts in proptest::collection::vec((0..4_u8, 0..12_u64, 0..8_usize), 1..120)) {
        let mut pool = BlockPool::new(6);
        let mut held: Vec<(BlockId, Option<u64>)> = Vec::new();
        // Hashes of free cached blocks, least recently released first.
        let mut free: Vec<u64> = Vec::new();
        let mut anonymous = 6;
        for (act, hash, at) in acts {
            let held_hash = |held: &[(BlockId, Option<u64>)], hash| held.iter().any(|(_, known)| *known == Some(hash));
            match act {
                0 => {
                    let block = pool.allocate();
                    prop_assert_eq!(block.is_some(), anonymous + free.len() > 0);
                    if let Some(block) = block {
                        if anonymous > 0 { anonymous -= 1 } else { free.remove(0); }
                        held.push((block, None));
                    }
                }
                1 => if let Some((block, known)) = held.get(at).copied() && known.is_none() {
                    let taken = held_hash(&held, hash) || free.contains(&hash);
                    pool.fill(block, hash);
                    if !taken { held[at].1 = Some(hash); }
                },
                2 => {
                    let found: Vec<_> = pool.lookup(&[hash]).collect();
                    prop_assert_eq!(found.len() == 1, held_hash(&held, hash) || free.contains(&hash));
                    if let Some(&block) = found.first() {
                        prop_assert_eq!(pool.is_free(block), !held_hash(&held, hash));
                        pool.take(block);
                        free.retain(|known| *known != hash);
                        held.push((block, Some(hash)));
                    }
                }
                _ => if at < held.len() {
                    let (block, known) = held.remove(at);
                    pool.release(&[block]);
                    match known {
                        None => anonymous += 1,
                        Some(hash) if !held_hash(&held, hash) => free.push(hash),
                        Some(_) => {}
                    }
                },
            }
            prop_assert_eq!(pool.free(), anonymous + free.len());
            let cached: HashSet<u64> = held.iter().filter_map(|(_, hash)| *hash).chain(free.iter().copied()).collect();
            prop_assert_eq!(pool.cached(), cached.len());
        }
    }
}

#[test]
fn a_transferred_prompt_costs_one_token_and_is_shared_like_a_computed_one() {
    let mut engine = Engine::new(small()).unwrap();
    let prompt: Vec<u32> = (0..40).collect();
    let transferred = Submission {
        transferred: true,
        ..request(0, prompt.clone(), 2)
    };
    engine.submit(transferred, 0.0).unwrap();
    engine.start_step(0.0).unwrap();
    let mut events = Vec::new();
    engine.end_step(1.0, &mut events);
    assert_eq!((events[0].index, events[0].cached), (0, 39));
    assert_eq!(engine.load().last_step_tokens, 1);
    drain(&mut engine, 1.0);
    assert_eq!(engine.counters().prefix_hits, 0, "nothing was found here");
    engine.submit(request(1, prompt, 1), 2.0).unwrap();
    assert!(drain(&mut engine, 2.0).0[0].cached > 0);
}
