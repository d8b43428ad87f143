//! Whether the API server answers, and what the log says about it.

use super::follow::Failure;
use std::collections::BTreeMap;

/// Which kinds cannot be followed at the moment. Kinds go by their plural.
#[derive(Debug, Default)]
pub(super) struct Health {
    failing: BTreeMap<&'static str, Failure>,
}

impl Health {
    /// Whether everything can be followed.
    pub(super) fn is_up(&self) -> bool {
        self.failing.is_empty()
    }

    /// A kind cannot be followed. An API server that is away fails all kinds at once and is one line in the log; a
    /// refusal concerns its kind only and is a line of its own. What fails again is no news. `meanwhile`: what the router
    /// does until then.
    pub(super) fn failed(&mut self, kind: &'static str, failure: Failure, meanwhile: &str) {
        let first = self.is_up();
        let known = self.failing.insert(kind, failure.clone());
        let news = failure.refused && known.is_none_or(|known| !known.refused);
        if first || news {
            let Failure { message, .. } = failure;
            tracing::error!("the API server cannot be asked for {kind}: {message}; {meanwhile}");
        }
    }

    /// A kind could be listed.
    pub(super) fn works(&mut self, kind: &'static str) {
        if self.failing.remove(kind).is_some() && self.is_up() {
            tracing::info!("the API server answers again: all that it knows is in force");
        }
    }

    /// A kind is of no interest any more.
    pub(super) fn forget(&mut self, kind: &'static str) {
        self.failing.remove(kind);
    }
}
