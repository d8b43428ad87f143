//! Lines leave through a thread of their own, many in one write, so that a slow disk never holds a request.

use super::Output;
use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that may wait to be written. Lines beyond are dropped and counted: a log that has fallen this far behind must
/// not take the memory of the router.
const LIMIT: usize = 8 << 20;
/// How long lines gather before they are written. One wake-up and one write for all of them costs a request less than
/// the line itself.
const GATHER: Duration = Duration::from_millis(10);

/// The buffer in front of the writing thread. Dropping it writes what is left and ends the thread.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    lost: Counter,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    closed: bool,
}

impl LogWriter {
    /// Opens the output and starts the thread. `lost` counts lines that were dropped, and those that could not be written.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(output: &Output, lost: Counter) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = match output {
            Output::Stdout => Box::new(io::stdout()),
            Output::Stderr => Box::new(io::stderr()),
            Output::File(path) => {
                Box::new(OpenOptions::new().create(true).append(true).open(path)?)
            }
        };
        let shared = Arc::<Shared>::default();
        let (theirs, unwritten) = (Arc::clone(&shared), lost.clone());
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || theirs.drain(sink, &unwritten))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            lost,
        })
    }

    /// Adds a line; `write` appends it to the buffer, its line end included.
    pub fn line(&self, write: impl FnOnce(&mut String)) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.text.len() > LIMIT {
            self.lost.inc();
            return;
        }
        let first = waiting.text.is_empty();
        write(&mut waiting.text);
        drop(waiting);
        if first {
            self.shared.filled.notify_one();
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.waiting.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn drain(&self, mut sink: Box<dyn Write + Send>, lost: &Counter) {
        let mut batch = String::new();
        let mut failing = false;
        loop {
            let mut waiting = self.waiting.lock();
            self.filled
                .wait_while(&mut waiting, |w| w.text.is_empty() && !w.closed);
            if !waiting.closed {
                self.filled
                    .wait_while_for(&mut waiting, |w| !w.closed, GATHER);
            }
            std::mem::swap(&mut batch, &mut waiting.text);
            let last = waiting.closed;
            drop(waiting);
            // A log that cannot be written must not stop the router; the next line may succeed again.
            match sink.write_all(batch.as_bytes()).and_then(|()| sink.flush()) {
                Ok(()) => {
                    if !batch.is_empty() && std::mem::take(&mut failing) {
                        tracing::info!("the access log can be written again");
                    }
                }
                Err(error) => {
                    lost.inc_by(memchr::memchr_iter(b'\n', batch.as_bytes()).count() as u64);
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!("cannot write the access log, its lines are lost: {error}");
                    }
                }
            }
            batch.clear();
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
    fn lines_are_complete_and_in_order_when_the_writer_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        std::fs::write(&path, "before\n").unwrap();
        let writer = LogWriter::start(&Output::File(path.clone()), Counter::default()).unwrap();
        for n in 0..1000 {
            writer.line(|text| text.push_str(&format!("{n}\n")));
        }
        drop(writer);
        let want: String = (0..1000).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("before\n{want}")
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let lost = Counter::default();
        let writer = LogWriter::start(&Output::File("/dev/full".into()), lost.clone()).unwrap();
        for n in 0..7 {
            writer.line(|text| text.push_str(&format!("{n}\n")));
        }
        drop(writer);
        assert_eq!(lost.get(), 7);
    }

    #[test]
    fn lines_beyond_the_limit_are_dropped_and_counted() {
        let lost = Counter::default();
        let writer = LogWriter {
            shared: Arc::default(),
            thread: None,
            lost: lost.clone(),
        };
        for _ in 0..12 {
            writer.line(|text| text.push_str(&"x".repeat(1 << 20)));
        }
        assert_eq!(lost.get(), 3);
        assert!(writer.shared.waiting.lock().text.len() <= LIMIT + (1 << 20));
    }
}
