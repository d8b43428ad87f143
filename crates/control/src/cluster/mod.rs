//! The cluster source: ModelServers, ModelRoutes, ExternalModelProviders and Pods as an API server tells of them.
//!
//! ```text
//! follow (one task a kind) ─▶ ClusterSource ─ store ─▶ Objects ─ snapshot ─▶ Fleet
//!                                  └─ status ─▶ report (one task) ─▶ API server
//! ```
//!
//! [`ClusterSource`] owns all that is known. Objects are read and checked by the code that reads manifests, and what
//! comes out are the same [`crate::Objects`]; only where pods come from is different.
//!
//! # Invariants
//!
//! - **Nothing is published before every kind was listed once**, and what is published stays in force while the API
//!   server is away.
//! - **Every object is judged by itself.** Of one that breaks a rule the last good version stays in force, or it is
//!   left out if there is none; its status and one log line say why.
//! - **A watch is never trusted for long**: after every failure, and every [`Timing::relist`] at the latest, a fresh
//!   list replaces what was known.
//! - **Whatever waits for the API server has a limit.**

mod connect;
mod entry;
mod follow;
mod health;
mod report;
mod scope;
mod source;
mod status;
mod store;
mod timing;
mod wire;

pub use connect::{ClusterOptions, ConnectError};
pub use source::ClusterSource;
pub use timing::Timing;
