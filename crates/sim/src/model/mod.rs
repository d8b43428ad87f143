//! The engine as a pure machine: requests and virtual time in, tokens out.
//!
//! Times are seconds as `f64` on a clock that the caller owns. Nothing here reads a clock, draws randomness or does IO, so
//! a live server and a trace replay run the same code.

mod engine;
mod estimate;
mod params;
mod pool;
mod sequence;

pub use engine::{Counters, Engine, Event, Load, Rejected, Timing};
pub use estimate::Estimate;
pub use params::{EngineParams, InvalidParams};
pub use pool::{BlockId, BlockPool, hash_blocks};
pub use sequence::{FinishReason, RequestId, Submission};
