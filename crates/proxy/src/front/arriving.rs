//! The time in which the first bytes of a connection must come.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::Sleep;

/// What an HTTP/2 client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Watches for the bytes that tell HTTP/1.1 from HTTP/2. The server waits for them without a limit; from then on it has
/// its own time-outs.
#[derive(Debug)]
pub(super) struct Arriving {
    /// Bytes of the preface that came.
    seen: usize,
    /// Until it is known what the client speaks.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    pub(super) fn within(limit: Duration) -> Self {
        Self {
            seen: 0,
            deadline: Some(Box::pin(tokio::time::sleep(limit))),
        }
    }

    /// Notes what came. Anything but a part of the preface decides.
    pub(super) fn came(&mut self, bytes: &[u8]) {
        if self.deadline.is_none() {
            return;
        }
        let wanted = PREFACE.get(self.seen..self.seen + bytes.len());
        self.seen += bytes.len();
        if wanted != Some(bytes) || self.seen == PREFACE.len() {
            self.deadline = None;
        }
    }

    /// Nothing came. Whether it is too late.
    pub(super) fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        self.deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready())
    }
}
