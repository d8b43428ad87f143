//! What the black-box tests are made of: scripted pods, clients that see every byte, and the router as a process.
//!
//! The tests themselves are those of the `kthena-router` package, which builds the program. Nothing here knows the
//! router's code: a pod, a client and the router meet over sockets only, and what the router says is read from its
//! output and its pages.
//!
//! Nothing waits for time to pass. [`until`] polls for a condition, [`within`] bounds everything that comes from a
//! socket, and a pod's [`Script`] is let go on by the test. Whatever does not come in [`PATIENCE`] ends the test.
//!
//! # Panics
//! Every function panics where a test should fail: when something does not come, or is not what it must be.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a harness fails its test by a panic"
)]

mod api_server;
mod client;
mod h2;
mod manifests;
mod message;
mod metrics;
mod pod;
mod program;
mod redis;
mod router;
mod script;
mod scripted_api;
mod setup;
mod tls;
mod wait;

pub use api_server::{
    ApiServer, Asked, Fault, Step, cluster_pod, custom, on_list, on_watch, on_write,
};
pub use client::{Answer, Client, End};
pub use h2::{H2, rest};
pub use manifests::{model_route, model_server, scheduler};
pub use message::Headers;
pub use metrics::Metrics;
pub use pod::{Gauges, Pod, Seen};
pub use program::{Ended, run};
pub use redis::Redis;
pub use router::{Output, Router};
pub use script::{Gate, Script, Stream, chat_answer, event, usage_event};
pub use scripted_api::{Exchange, ScriptedApi};
pub use setup::Setup;
pub use tls::{CertificateAuthority, TLS_VERSIONS, TlsClient};
pub use wait::{PATIENCE, until, within};
