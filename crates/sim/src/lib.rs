//! A simulated inference engine, and load to play against it.
//!
//! - [`model`]: the engine as a pure machine: a KV pool of token blocks with prefix caching, a waiting queue, continuous
//!   batching, step times from a roofline. Virtual time goes in, tokens come out; no IO, no clock.
//! - [`live`]: that machine behind vLLM's HTTP API, in real time: responses, errors, streams and metrics have the shapes
//!   recorded from vLLM 0.32.
//! - [`load`]: multi-turn chats played against any OpenAI-compatible address, measured from the client's side.
//! - [`replay`]: a trace played in virtual time over the router's own decisions and many such engines.
//! - [`report`]: what a run measured, live or replayed, as a table, JSON or a page.
//!
//! # What is modelled
//! Prefix caching by chained token blocks with LRU eviction (cached tokens as the real engine counts them, generated
//! tokens included); chunked prefill under a token budget; queueing at a limit of running sequences and of blocks;
//! pre-emption with recomputation; step time from computed tokens, weights read, attention and KV reads.
//!
//! # What is not modelled
//! The text: answers are noise of the asked length. Sampling parameters (accepted, ignored), log probabilities, tools,
//! images, LoRA, several GPUs, speculative decoding, KV offload, KV events, CPU time of the API server (the
//! simulator's own is what it is), a second copy of a block when a prompt of whole blocks recomputes its last one.

pub mod cli;
pub mod live;
pub mod load;
pub mod model;
pub mod replay;
pub mod report;
pub mod rng;
pub mod tokens;
pub mod words;
