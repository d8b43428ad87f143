//! Reads every pod's `/metrics` and `/v1/models`, each pod on its own, every interval.

mod latency;
mod page;
mod pod;
mod run;

pub use page::{Page, Sample};
pub use run::run;
