//! Prefill/decode disaggregation: how one request becomes two.
//!
//! The prefill pod computes the prompt and one token, the decode pod takes over the KV cache and generates the answer. A
//! [`Connector`] says in which order both are asked and what the engines must be told so that the cache finds its way. A
//! [`Split`] is one request seen so: pure, and only as edits of the client's body, so that everything else arrives byte
//! for byte.

mod connector;
mod split;

pub use connector::{Connector, Order};
pub use split::{Handover, NoTransferParams, Split, transfer_params};
