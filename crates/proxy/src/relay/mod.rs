//! From the pod's body to the client's, byte for byte, with an eye on usage and on how it ends.

mod body;
mod events;
mod facts;
mod json;
mod watch;

pub(crate) use body::RelayBody;
pub use events::EventScanner;
pub use facts::{Facts, Usage};
pub use watch::Watch;
