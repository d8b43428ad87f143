//! Sizes and speeds of an engine.

use thiserror::Error;

/// Sizes and speeds of one engine. Times are seconds.
///
/// A step's time is a roofline: a batch reads all weights once however few tokens it has, and computes for each token;
/// the longer of the two counts. Attention comes on top: arithmetic for each (token, earlier token) pair of a prefill,
/// and one read of the whole KV cache of each sequence.
///
/// `step = overhead + max(weight_read, tokens × compute) + prefill_pairs × attention + context_tokens × kv_read`
#[derive(Clone, Debug, PartialEq)]
pub struct EngineParams {
    /// Tokens in one KV block.
    pub block_size: usize,
    /// KV blocks of the pool. As in vLLM one of them is a placeholder and holds no tokens.
    pub num_blocks: usize,
    /// Longest prompt and answer together, in tokens.
    pub max_model_len: usize,
    /// Most sequences in one batch.
    pub max_num_seqs: usize,
    /// Most tokens computed in one step, prefill and decode together.
    pub max_num_batched_tokens: usize,
    /// Requests that may wait; more are refused. `None`: no limit, as vLLM's default.
    pub max_num_queued_reqs: Option<usize>,
    /// Scheduler, kernel launches and sampling of one step, seconds.
    pub step_overhead: f64,
    /// Reading all weights once, seconds.
    pub weight_read: f64,
    /// Matrix products of one token, seconds.
    pub compute_per_token: f64,
    /// Attention of one computed prompt token to one token before it, seconds.
    pub attention_per_pair: f64,
    /// Reading the keys and values of one token of context, seconds.
    pub kv_read_per_token: f64,
}

impl EngineParams {
    /// A 7B model in 16 bits on one 80 GB datacentre GPU.
    ///
    /// Published: the GPU (NVIDIA A100 80GB SXM data sheet) has 312 TFLOP/s dense BF16 and 2.04 TB/s; the model (Llama 2
    /// 7B) has 6.74e9 parameters, 32 layers, 4096 wide, full multi-head attention. vLLM's defaults give the limits
    /// (block 16, 256 sequences, 8192 batched tokens; GPU memory share 0.9).
    ///
    /// Assumed: half of the peak FLOP/s and 80 % of the bandwidth are reached, 1 ms of overhead a step, 3 GB of activations.
    /// - weights: 13.5 GB / 1.63 TB/s = 8.3 ms
    /// - compute: 2 × 6.74e9 FLOP / 156 TFLOP/s = 86 µs a token, about 11,600 prompt tokens a second
    /// - attention: 4 × 4096 × 32 FLOP / 156 TFLOP/s = 3.4 ns a pair
    /// - KV: 2 × 32 × 4096 × 2 B = 512 KiB a token; read in 0.32 µs; (0.9 × 80 − 13.5 − 3) GB hold 105,800 tokens: 6,600
    ///   blocks
    #[must_use]
    pub fn datacentre_7b() -> Self {
        Self {
            block_size: 16,
            num_blocks: 6_600,
            max_model_len: 32_768,
            max_num_seqs: 256,
            max_num_batched_tokens: 8_192,
            max_num_queued_reqs: None,
            step_overhead: 0.001,
            weight_read: 0.0083,
            compute_per_token: 86e-6,
            attention_per_pair: 3.4e-9,
            kv_read_per_token: 0.32e-6,
        }
    }

    /// An 8B model with grouped-query attention and a context of 131,072 tokens, in 16 bits on one 80 GB datacentre GPU.
    ///
    /// Published: the GPU as for [`Self::datacentre_7b`]; the model (Llama 3.1 8B) has 8.03e9 parameters, 32 layers, 4096 wide, 8 heads
    /// of 128 for keys and values. The same share of the GPU's peak is assumed.
    /// - weights: 16.1 GB / 1.63 TB/s = 9.9 ms
    /// - compute: 2 × 8.03e9 FLOP / 156 TFLOP/s = 103 µs a token, about 9,700 prompt tokens a second
    /// - attention: 4 × 4096 × 32 FLOP / 156 TFLOP/s = 3.4 ns a pair
    /// - KV: 2 × 32 × 1024 × 2 B = 128 KiB a token; read in 0.08 µs; (0.9 × 80 − 16.1 − 3) GB hold 403,000 tokens: 25,200
    ///   blocks
    #[must_use]
    pub fn datacentre_8b_long() -> Self {
        Self {
            num_blocks: 25_200,
            max_model_len: 131_072,
            weight_read: 0.0099,
            compute_per_token: 103e-6,
            kv_read_per_token: 0.08e-6,
            ..Self::datacentre_7b()
        }
    }

    /// Seconds of a step that computes `tokens` tokens of which prefills attend to `pairs` earlier tokens in all, in a
    /// batch whose sequences have `context` tokens in all.
    #[must_use]
    pub fn step_seconds(&self, tokens: usize, pairs: f64, context: usize) -> f64 {
        let compute = tokens as f64 * self.compute_per_token;
        self.step_overhead
            + compute.max(self.weight_read)
            + pairs * self.attention_per_pair
            + context as f64 * self.kv_read_per_token
    }

    /// Blocks that hold `tokens` tokens.
    #[must_use]
    pub fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }

    /// Checks that every request within `max_model_len` can be served by an otherwise idle engine.
    ///
    /// # Errors
    /// Names the first parameter that makes the engine unable to work.
    pub fn validate(&self) -> Result<(), InvalidParams> {
        for (name, value) in [
            ("block_size", self.block_size),
            ("max_model_len", self.max_model_len),
            ("max_num_seqs", self.max_num_seqs),
            ("max_num_batched_tokens", self.max_num_batched_tokens),
        ] {
            if value == 0 {
                return Err(InvalidParams::Zero(name));
            }
        }
        for (name, value, most) in [
            ("block_size", self.block_size, MAX_BLOCK_SIZE),
            ("num_blocks", self.num_blocks, MAX_BLOCKS),
        ] {
            if value > most {
                return Err(InvalidParams::TooLarge { name, value, most });
            }
        }
        for (name, value) in [
            ("step_overhead", self.step_overhead),
            ("weight_read", self.weight_read),
            ("compute_per_token", self.compute_per_token),
            ("attention_per_pair", self.attention_per_pair),
            ("kv_read_per_token", self.kv_read_per_token),
        ] {
            if !(0.0..=MAX_SECONDS).contains(&value) {
                return Err(InvalidParams::Seconds(name));
            }
        }
        if self.num_blocks <= self.blocks_for(self.max_model_len) {
            return Err(InvalidParams::PoolTooSmall {
                blocks: self.num_blocks,
                needed: self.blocks_for(self.max_model_len) + 1,
            });
        }
        Ok(())
    }
}

/// Most tokens of a block: a thousand times what engines use.
const MAX_BLOCK_SIZE: usize = 1 << 14;
/// Most blocks of a pool: some hundred times what an engine has. Each takes 24 bytes here.
const MAX_BLOCKS: usize = 1 << 22;
/// Longest time of one part of a step, seconds: what takes longer is a mistake of the unit.
const MAX_SECONDS: f64 = 3_600.0;

/// Parameters with which no engine can work.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum InvalidParams {
    /// A count that must be positive is 0.
    #[error("{0} must be greater than 0")]
    Zero(&'static str),
    /// A count that is beyond any engine.
    #[error("{name} is {value}: {most} is the most")]
    TooLarge {
        /// Which.
        name: &'static str,
        /// The count given.
        value: usize,
        /// The greatest.
        most: usize,
    },
    /// A time that is negative, not a number, or more than an hour.
    #[error("{0} must be a number of seconds, 0 to {MAX_SECONDS}")]
    Seconds(&'static str),
    /// One request of the greatest length would not fit.
    #[error(
        "{blocks} KV blocks cannot hold one request of max_model_len: at least {needed} are needed"
    )]
    PoolTooSmall {
        /// Blocks given.
        blocks: usize,
        /// Blocks that one request of the greatest length and the placeholder need.
        needed: usize,
    },
}
