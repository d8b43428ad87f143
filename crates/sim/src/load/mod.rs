//! Multi-turn chats played against an OpenAI-compatible address, measured from the client's side.
//!
//! Users come in groups; the users of one group share a long system prompt, as the users of one application do. Each
//! user holds a conversation: the history grows by the question and the real answer, then the user thinks. Arrivals are
//! an open loop (Poisson): a slow server does not slow down the users who have yet to come.
//!
//! Who asks what, how much and when the first time is decided by the seed alone, so two runs offer the same load; when
//! later turns come depends on when the answers did. Each conversation names itself in the header `x-session-id`.

mod client;
mod play;
mod report;
mod scenario;
mod scrape;
mod sse;

pub use play::{Progress, play};
pub use report::{PodShare, Report};
pub use scenario::{Scenario, demo_engine};
pub use scrape::EngineSums;
