//! What the router knows of its own decisions: how much of the prompts was found, why a pod was chosen, what prompts
//! have in common. For the debug pages, the response header `x-kthena-decision` and the comparison with the engines.
//!
//! A request that is not sampled pays a few atomic additions and no lock. Prompt texts stay in memory.

mod agreement;
mod decision;
mod header;
mod history;
mod passes;
mod prompts;
mod ring;
mod sampler;
mod trail;
mod windows;
mod working_set;

pub(crate) use agreement::{Agreements, Served};
pub(crate) use decision::{Candidate, Decision};
pub use header::DecisionHeader;
pub(crate) use header::X_DECISION;
pub(crate) use passes::{Passes, Seen};
pub(crate) use prompts::{HEAD_BYTES, Prompts, Resumes, Shared};
pub(crate) use ring::Decisions;
pub(crate) use sampler::Sampler;
pub(crate) use trail::Trail;
pub(crate) use windows::{Tally, Windows};
pub(crate) use working_set::{Looked, WorkingSet};

/// What all requests together leave.
#[derive(Debug, Default)]
pub(crate) struct Insight {
    /// Which requests are looked at closely.
    pub(crate) sampler: Sampler,
    /// How much of the prompts was found lately.
    pub(crate) windows: Windows,
    /// How much is asked for, once lists are too short.
    pub(crate) working_set: WorkingSet,
    /// The last decisions.
    pub(crate) decisions: Decisions,
    /// The last prompts of each model.
    pub(crate) prompts: Prompts,
    /// How far predictions were right.
    pub(crate) agreements: Agreements,
}
