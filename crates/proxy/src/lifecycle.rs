//! Starting, serving, draining: one state, and the count of what is still under way.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Where the router is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not everything is known yet.
    #[default]
    Starting,
    /// Takes requests.
    Serving,
    /// Finishes what is under way; still answers whoever has not heard of it yet.
    Draining,
    /// Finishes what is under way and takes no new connections.
    Closing,
    /// Ends what is still under way.
    Cutting,
}

/// How long a drain still takes new connections, at most half of its time: load balancers need some seconds to learn that
/// this router is no longer ready.
const ANSWERS_ON: Duration = Duration::from_secs(5);

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
        let ended = async {
            let answers_on = ANSWERS_ON.min(limit / 2);
            if timeout(answers_on, self.connections.wait()).await.is_err() {
                self.advance(Phase::Closing);
                self.connections.wait().await;
            }
        };
        timeout(limit, ended).await.is_ok()
    }
}
