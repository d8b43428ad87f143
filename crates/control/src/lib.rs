//! The control plane: manifests in, one immutable [`routing::fleet::Fleet`] out.
//!
//! ```text
//! directory ─ files ─▶ yaml ─┐
//!                            ├▶ node ─▶ resources ─▶ Objects ─ snapshot ─▶ Fleet
//! API server ─▶ cluster ─────┘
//! ```
//!
//! - [`files`] and [`FileSource`] read a directory and follow it.
//! - [`ClusterSource`] follows a cluster. It ends in the same [`Objects`], so that everything after them is shared.
//! - [`resources`] holds the kinds and every rule that a manifest must keep. All that is wrong is collected as
//!   [`Problem`]s with file, line and field, not only the first.
//! - [`snapshot`] turns objects into the next fleet and keeps the pods that did not change.
//! - [`crd`] describes the kinds to a cluster, [`admission`] judges objects before a cluster stores them: by the same
//!   rules, in the same words.
//! - [`router_config`] reads the routerConfiguration of the ConfigMap.
//!
//! # Invariants
//!
//! - **All or nothing**: a directory with one error yields no objects at all. In a cluster, where nobody edits all objects
//!   together, each is judged by itself.
//! - **No input panics, and memory is bounded** whatever the files hold.
//! - **No value of a Secret is kept, logged or shown.**

pub mod admission;
mod cluster;
pub mod crd;
mod fields;
pub mod files;
pub mod go_duration;
mod names;
mod node;
mod problem;
pub mod resources;
pub mod router_config;
mod selection;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod watch;
mod yaml;

pub use cluster::{ClusterOptions, ClusterSource, ConnectError, Timing};
pub use problem::{Problem, Severity};
pub use resources::Objects;
pub use router_config::RouterConfig;
pub use watch::FileSource;
