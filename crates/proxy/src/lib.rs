//! Bytes in, bytes out: listeners, forwarding, streaming, metrics.
//!
//! The way of a request is one straight line (`front::infer`): read, extract, route, plan, forward, relay; its record is
//! written when it ends, however it ends. This crate knows nothing of Kubernetes, flags or YAML: it is given a
//! [`routing::fleet::Fleet`] and serves it.

pub mod access_log;
mod app;
pub mod auth;
mod backlog;
pub mod debug;
pub mod doctor;
mod error;
mod forward;
pub mod front;
mod insight;
pub mod lifecycle;
pub mod metrics;
mod pd;
pub mod rand;
mod record;
pub mod recording;
pub mod relay;
pub mod scrape;
pub mod sticky;
pub mod tls;
pub mod upkeep;
pub mod upstream;

pub use app::{App, Settings};
pub use error::Refusal;
pub use insight::DecisionHeader;
