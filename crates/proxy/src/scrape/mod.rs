//! Reads every pod's `/metrics` and `/v1/models`, each page on its own, every interval.

mod get;
mod growth;
mod latency;
mod list;
mod page;
mod pod;
mod run;

pub use page::{Page, Sample};
pub use run::run;
