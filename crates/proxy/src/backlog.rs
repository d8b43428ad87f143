//! What requests leave to a thread of its own to write, many at once, so that a slow disk never holds a request.

use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What gathers until it is written.
pub(crate) trait Batch: Default + Send + 'static {
    /// In bytes; 0 if there is nothing in it.
    fn size(&self) -> usize;

    /// Empties it.
    fn clear(&mut self);
}

impl Batch for String {
    fn size(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }
}

/// The batch that gathers in front of the thread. Dropping it has the thread write what is left, and waits for that.
#[derive(Debug)]
pub(crate) struct Backlog<B> {
    shared: Arc<Shared<B>>,
    limit: usize,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared<B> {
    waiting: Mutex<Waiting<B>>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Waiting<B> {
    batch: B,
    closed: bool,
}

impl<B: Batch> Backlog<B> {
    /// Starts the thread. `write` is called with batches that were `gather` long in the making; one whose size exceeds
    /// `limit` takes nothing more.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start(
        name: &str,
        limit: usize,
        gather: Duration,
        write: impl FnMut(&B) + Send + 'static,
    ) -> io::Result<Self> {
        let mut backlog = Self::unwritten(limit);
        let shared = Arc::clone(&backlog.shared);
        let thread = std::thread::Builder::new().name(name.into());
        backlog.thread = Some(thread.spawn(move || shared.drain(gather, write))?);
        Ok(backlog)
    }

    /// One that nobody writes.
    pub(crate) fn unwritten(limit: usize) -> Self {
        Self {
            shared: Arc::default(),
            limit,
            thread: None,
        }
    }

    /// Adds to the batch, unless it has fallen too far behind. Returns whether it did.
    pub(crate) fn add(&self, add: impl FnOnce(&mut B)) -> bool {
        let mut waiting = self.shared.waiting.lock();
        let before = waiting.batch.size();
        if before > self.limit {
            return false;
        }
        add(&mut waiting.batch);
        drop(waiting);
        if before == 0 {
            self.shared.filled.notify_one();
        }
        true
    }
}

impl<B> Drop for Backlog<B> {
    fn drop(&mut self) {
        self.shared.waiting.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<B: Batch> Shared<B> {
    fn drain(&self, gather: Duration, mut write: impl FnMut(&B)) {
        let mut batch = B::default();
        loop {
            let mut waiting = self.waiting.lock();
            self.filled
                .wait_while(&mut waiting, |w| w.batch.size() == 0 && !w.closed);
            if !waiting.closed {
                self.filled
                    .wait_while_for(&mut waiting, |w| !w.closed, gather);
            }
            std::mem::swap(&mut batch, &mut waiting.batch);
            let last = waiting.closed;
            drop(waiting);
            if batch.size() > 0 {
                write(&batch);
                batch.clear();
            }
            if last {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_written_in_order_and_once() {
        let written = Arc::new(Mutex::new(String::new()));
        let theirs = Arc::clone(&written);
        let write = move |batch: &String| theirs.lock().push_str(batch);
        let backlog = Backlog::start("test", 1 << 20, Duration::from_millis(1), write).unwrap();
        let mut wanted = String::new();
        for n in 0..10_000 {
            let item = format!("{n} ");
            assert!(backlog.add(|batch: &mut String| batch.push_str(&item)));
            wanted.push_str(&item);
            if n % 2_500 == 0 {
                // Now and then the thread has caught up.
                while backlog.shared.waiting.lock().batch.size() > 0 {
                    std::thread::yield_now();
                }
            }
        }
        drop(backlog);
        assert!(*written.lock() == wanted);
    }

    #[test]
    fn what_exceeds_the_limit_is_not_taken() {
        let backlog = Backlog::<String>::unwritten(8);
        let taken = (0..9).filter(|_| backlog.add(|batch| batch.push_str("xxx")));
        assert_eq!(
            taken.count(),
            3,
            "the one that crosses the limit is the last"
        );
    }
}
