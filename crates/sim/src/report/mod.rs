//! What a run measured, live or replayed, for a person, a program or a browser.

mod columns;
mod latencies;

pub use columns::{Column, Summary};
pub use latencies::Latencies;

/// A part in percent of the whole; 0 of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}
