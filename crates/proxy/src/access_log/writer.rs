//! Lines leave through a thread of their own, many in one write, so that a slow disk never holds a request.

use super::Output;
use prometheus_client::metrics::counter::Counter;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Lines that may wait to be written. More are dropped and counted: a log that has fallen this far behind must not
/// take the memory of the router.
const QUEUE: usize = 16 << 10;
/// Bytes that go out in one write, at most.
const BATCH: usize = 64 << 10;

/// The queue to the writing thread. Dropping it writes what is queued and ends the thread.
#[derive(Debug)]
pub struct LogWriter {
    queue: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
    lost: Counter,
}

impl LogWriter {
    /// Opens the output and starts the thread. `lost` counts dropped lines.
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
        let (queue, lines) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || drain(&lines, sink))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            lost,
        })
    }

    /// Queues a line, its line end included.
    pub fn write(&self, line: String) {
        if let Some(queue) = &self.queue
            && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = queue.try_send(line)
        {
            self.lost.inc();
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn drain(lines: &Receiver<String>, mut sink: Box<dyn Write + Send>) {
    let mut batch = String::with_capacity(BATCH);
    while let Ok(line) = lines.recv() {
        batch.push_str(&line);
        while batch.len() < BATCH
            && let Ok(line) = lines.try_recv()
        {
            batch.push_str(&line);
        }
        // A log that cannot be written must not stop the router; the next line may succeed again.
        let _ = sink.write_all(batch.as_bytes()).and_then(|()| sink.flush());
        batch.clear();
    }
}
