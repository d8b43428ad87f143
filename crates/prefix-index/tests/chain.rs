//! Blocks and hashes. The golden values were computed with the `xxhash` package of Python, an independent implementation.

use prefix_index::{Chain, Hashes};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

fn hash(model: &str, text: &[u8], block: usize, max: usize) -> Hashes {
    let mut chain = Chain::new(model, block, max);
    let _ = chain.push(text);
    chain.finish()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

#[test]
fn xxh3_known_answers() {
    let answers: [(&[u8], u64); 6] = [
        (b"", 0x2d06_8005_38d3_94c2),
        (b"a", 0xe6c6_32b6_1e96_4e1f),
        (b"abc", 0x78af_5f94_892f_3950),
        (b"hello world", 0xd447_b1ea_40e6_988b),
        (&pattern(72), 0x62c7_252a_413f_57bb),
        (&pattern(1000), 0x33ef_703f_b2b2_0ed1),
    ];
    for (input, expected) in answers {
        assert_eq!(xxh3_64(input), expected, "{} bytes", input.len());
    }
}

#[test]
fn b4_golden_chains() {
    assert_eq!(
        *hash("test-model", b"hello world", 64, 128),
        [0x399f_6974_f78b_b10c]
    );
    let three = [
        0x6cce_e6dc_5600_37dd,
        0x8b59_2a01_c2dc_c764,
        0x6406_cae1_3d31_123a,
    ];
    assert_eq!(*hash("test-model", &[b'a'; 130], 64, 128), three);
    assert_eq!(
        *hash("m", b"<|im_start|>user\nhi<|im_end|>\n", 64, 128),
        [0x082b_14c9_b3ac_f238]
    );
    let long = hash("test-model", &pattern(8192), 64, 128);
    let picked = [long[0], long[31], long[127]];
    assert_eq!(
        picked,
        [
            0x55a9_373b_7d95_5e0e,
            0x61e1_3c60_7b0c_f0be,
            0x2dd9_10c1_e0a3_5ea4
        ]
    );
    let large_blocks = [
        0x9e52_e46e_5a7a_556f,
        0xf3b4_9566_0b48_2a11,
        0x85ee_bb03_9023_50d8,
    ];
    assert_eq!(*hash("test-model", &pattern(1000), 400, 128), large_blocks);
}

#[test]
fn b1_last_block_may_be_shorter() {
    let of = |len| hash("m", &pattern(len), 64, 128).len();
    assert_eq!([0, 1, 63, 64, 65, 128, 130].map(of), [0, 1, 1, 1, 2, 2, 3]);
}

#[test]
fn b2_blocks_are_bytes_and_may_split_characters() {
    // Nine bytes: blocks of four end inside the second and the third character.
    let golden = [
        0x4529_0f07_e70d_de96,
        0x2b89_f8bd_793c_4966,
        0x78f9_e0ed_e84f_669e,
    ];
    assert_eq!(*hash("", "提示词".as_bytes(), 4, 128), golden);
}

#[test]
fn b3_only_the_first_blocks_are_hashed() {
    let mut other_end = pattern(200);
    other_end[128] ^= 1;
    assert_eq!(
        hash("m", &pattern(200), 64, 2),
        hash("m", &other_end, 64, 2)
    );
    assert_eq!(hash("m", &pattern(200), 64, 2).len(), 2);
    assert!(hash("m", &pattern(200), 64, 0).is_empty());
}

#[test]
fn b3_a_full_chain_asks_for_no_more() {
    let mut chain = Chain::new("m", 64, 2);
    assert!(chain.push(&[0; 127]).is_continue());
    assert!(chain.push(&[0; 1]).is_break());
    assert!(chain.push(&[0; 500]).is_break());
    assert_eq!(chain.finish().len(), 2);
}

#[test]
fn b6_the_model_starts_the_chain() {
    let (a, b) = (
        hash("a", &pattern(200), 64, 128),
        hash("b", &pattern(200), 64, 128),
    );
    assert!(a.iter().all(|h| !b.contains(h)));
}

#[test]
fn c4_2000_bytes_are_32_blocks() {
    assert_eq!(hash("m", &pattern(2000), 64, 128).len(), 32);
}

#[test]
fn absurd_sizes_cost_nothing() {
    let huge = hash("m", &pattern(1000), usize::MAX, usize::MAX);
    assert_eq!(
        *huge,
        [xxh3_64(
            &[&xxh3_64(b"m").to_le_bytes()[..], &pattern(1000)].concat()
        )]
    );
    assert_eq!(
        hash("m", &pattern(10), 0, usize::MAX).len(),
        10,
        "a block size of 0 counts as 1"
    );
}

proptest! {
    #[test]
    fn the_slicing_does_not_matter(
        text in prop::collection::vec(any::<u8>(), 0..900),
        cuts in prop::collection::vec(0usize..900, 0..12),
        block in 1usize..300,
        max in 0usize..40,
    ) {
        let mut chain = Chain::new("model", block, max);
        let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(text.len())).chain([0, text.len()]).collect();
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            let _ = chain.push(&text[pair[0]..pair[1]]);
        }
        let mut previous = xxh3_64(b"model");
        let mut naive = Vec::new();
        for block in text.chunks(block).take(max) {
            previous = xxh3_64(&[&previous.to_le_bytes()[..], block].concat());
            naive.push(previous);
        }
        prop_assert_eq!(&*chain.finish(), &naive[..]);
    }

    #[test]
    fn b5_a_hash_is_shared_exactly_up_to_the_first_difference(
        text in prop::collection::vec(any::<u8>(), 1..700),
        at in any::<prop::sample::Index>(),
    ) {
        let at = at.index(text.len());
        let mut other = text.clone();
        other[at] ^= 0x40;
        let (a, b) = (hash("m", &text, 64, 128), hash("m", &other, 64, 128));
        for n in 0..a.len() {
            prop_assert_eq!(a[n] == b[n], n < at / 64, "block {} with a difference at byte {}", n, at);
        }
    }
}
