//! A Kubernetes API server in the process of the test: lists, watches and status writes as a real one does them, and
//! faults where a scenario wants them.
//!
//! Objects go over the wire as a real server sends them: with managed fields, generations, uids, quantities, nulls and
//! fields that nobody here knows.

mod answer;
mod fault;
mod objects;
mod selector;
mod server;

pub use fault::{Fault, Step, on_list, on_watch, on_write};
pub use objects::{cluster_pod, custom};
pub use server::{ApiServer, Asked};
