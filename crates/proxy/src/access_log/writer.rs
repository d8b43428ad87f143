//! Lines on their way to where the access log goes.

use super::Output;
use crate::backlog::Backlog;
use prometheus_client::metrics::counter::Counter;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::time::Duration;

/// Bytes that may wait to be written. Lines beyond are dropped and counted: a log that has fallen this far behind must
/// not take the memory of the router.
const LIMIT: usize = 8 << 20;
/// How long lines gather before they are written. One wake-up and one write for all of them costs a request less than
/// the line itself.
const GATHER: Duration = Duration::from_millis(10);

/// The way to the output. Dropping it writes what is left.
#[derive(Debug)]
pub struct LogWriter {
    backlog: Backlog<String>,
    lost: Counter,
}

impl LogWriter {
    /// Opens the output and starts the thread. `lost` counts lines that were dropped, and those that could not be written.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(output: &Output, lost: Counter) -> io::Result<Self> {
        let mut sink: Box<dyn Write + Send> = match output {
            Output::Stdout => Box::new(io::stdout()),
            Output::Stderr => Box::new(io::stderr()),
            Output::File(path) => {
                Box::new(OpenOptions::new().create(true).append(true).open(path)?)
            }
        };
        let unwritten = lost.clone();
        let mut failing = false;
        let write = move |lines: &String| {
            // A log that cannot be written must not stop the router; the next line may succeed again.
            match sink.write_all(lines.as_bytes()).and_then(|()| sink.flush()) {
                Ok(()) => {
                    if std::mem::take(&mut failing) {
                        tracing::info!("the access log can be written again");
                    }
                }
                Err(error) => {
                    unwritten.inc_by(memchr::memchr_iter(b'\n', lines.as_bytes()).count() as u64);
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!("cannot write the access log, its lines are lost: {error}");
                    }
                }
            }
        };
        Ok(Self {
            backlog: Backlog::start("access-log", LIMIT, GATHER, write)?,
            lost,
        })
    }

    /// Adds a line; `write` appends it to the buffer, its line end included.
    pub fn line(&self, write: impl FnOnce(&mut String)) {
        if !self.backlog.add(write) {
            self.lost.inc();
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
            backlog: Backlog::unwritten(LIMIT),
            lost: lost.clone(),
        };
        for _ in 0..12 {
            writer.line(|text| text.push_str(&"x".repeat(1 << 20)));
        }
        assert_eq!(lost.get(), 3);
    }
}
