//! Every decision of the router, without IO: `bytes → request → prompt → route → candidates → filter → score → pick`.
//!
//! This crate reads no clock, draws no randomness and performs no IO: the same input gives the same plan. The caller
//! passes a `draw` (random bits for weighted choices and ties) and keeps the live load figures of the pods up to date.

pub mod fleet;
pub mod pd;
pub mod prompt;
pub mod request;
pub mod route;
pub mod schedule;
pub mod session;
