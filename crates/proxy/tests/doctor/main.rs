//! Each finding of `doctor`: triggered by facts that deserve it, and silent on facts that do not.

mod balance;
mod cache;
mod golden;
mod setting;
mod support;
