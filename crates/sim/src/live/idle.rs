//! When a connection has been idle for too long.

use tokio::{sync::watch, time::Instant};

/// Tells when the last response of a connection ended; nothing before the first and during one.
#[derive(Clone, Debug)]
pub(super) struct Idle {
    since: watch::Sender<Option<Instant>>,
}

impl Idle {
    pub(super) fn new() -> (Self, watch::Receiver<Option<Instant>>) {
        let (since, receiver) = watch::channel(None);
        (Self { since }, receiver)
    }

    /// Marks the connection busy until the mark is dropped.
    pub(super) fn busy(&self) -> Busy {
        self.since.send_replace(None);
        Busy(self.clone())
    }
}

/// A request is being answered.
#[derive(Debug)]
pub(super) struct Busy(Idle);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.since.send_replace(Some(Instant::now()));
    }
}
