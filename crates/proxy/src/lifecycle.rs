//! Starting, serving, draining: one state, and the count of what is still under way.

use std::time::Duration;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Where the router is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not everything is known yet.
    #[default]
    Starting,
    /// Takes requests.
    Serving,
    /// Finishes what is under way.
    Draining,
    /// Ends what is still under way.
    Cutting,
}

/// The phase, and the connections of the inference listener.
#[derive(Debug, Default)]
pub struct Lifecycle {
    phase: watch::Sender<Phase>,
    connections: TaskTracker,
}

impl Lifecycle {
    /// The phase now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Follows the phase.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Moves on to a later phase; never back.
    pub fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = (*phase).max(to);
            later
        });
    }

    /// Runs a connection as a task of its own.
    pub(crate) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        self.connections.spawn(connection);
    }

    /// Starts draining and waits until every connection has ended, `limit` at most. Returns whether they have.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.advance(Phase::Draining);
        self.connections.close();
        tokio::time::timeout(limit, self.connections.wait())
            .await
            .is_ok()
    }
}
