//! Each finding of `doctor`: triggered by facts that deserve it, and silent on facts that do not.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests"
)]

mod balance;
mod cache;
mod golden;
mod setting;
mod support;
