//! The cluster source against an API server that plays scenarios.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a harness fails its test by a panic"
)]

mod objects;
mod pods;
mod scope;
mod status;
mod support;
mod trouble;
mod watch;
