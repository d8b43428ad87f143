//! Requests on their way to the file.

use super::redact::Key;
use super::{Recording, Served, line};
use crate::backlog::{Backlog, Batch};
use prometheus_client::metrics::counter::Counter;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of bodies that may wait to be written; what comes on top is dropped and counted. Two bodies of the greatest
/// default length, or some ten thousand usual ones.
const MAX_WAITING: usize = 64 << 20;
/// What a request takes besides its body, in bytes.
const OVERHEAD: usize = 256;
/// How long requests gather before they are written.
const GATHER: Duration = Duration::from_millis(50);
/// Bytes that are written at once.
const WRITE_SIZE: usize = 1 << 20;
/// Errors are logged this often at most.
const ERROR_PAUSE: Duration = Duration::from_secs(60);

/// The way to the file. Dropping it writes what is left.
#[derive(Debug)]
pub struct Recorder {
    backlog: Backlog<Requests>,
    /// The file has its greatest length.
    full: Arc<AtomicBool>,
    lost: Counter,
}

#[derive(Debug, Default)]
struct Requests {
    list: Vec<Served>,
    bytes: usize,
}

impl Batch for Requests {
    fn size(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        // A burst's room is not kept.
        *self = Self::default();
    }
}

impl Recorder {
    /// Opens the file and starts the thread. `lost` counts requests that could not be written.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(recording: &Recording, lost: Counter) -> io::Result<Self> {
        let mut output = Output::open(recording)?;
        let key = recording.redacts.then(Key::default);
        let full = Arc::new(AtomicBool::new(false));
        let (theirs, unwritten) = (Arc::clone(&full), lost.clone());
        let write = move |requests: &Requests| {
            for served in &requests.list {
                let added = output.full || output.add(served, key.as_ref());
                if !added {
                    unwritten.inc();
                }
                if output.lines.len() >= WRITE_SIZE {
                    unwritten.inc_by(output.write());
                }
            }
            unwritten.inc_by(output.write());
            theirs.store(output.full, Relaxed);
        };
        Ok(Self {
            backlog: Backlog::start("recorder", MAX_WAITING, GATHER, write)?,
            full,
            lost,
        })
    }

    /// Whether requests are still recorded.
    pub(crate) fn is_open(&self) -> bool {
        !self.full.load(Relaxed)
    }

    /// Hands a request over.
    pub(crate) fn record(&self, served: Served) {
        let taken = self.backlog.add(|requests| {
            requests.bytes += served.body.len() + OVERHEAD;
            requests.list.push(served);
        });
        if !taken {
            self.lost.inc();
        }
    }
}

/// The file and what is to be written next.
struct Output {
    file: File,
    name: String,
    /// Length of the file with all that is to be written.
    length: u64,
    max: u64,
    full: bool,
    /// The file may end in the middle of a line.
    torn: bool,
    lines: Vec<u8>,
    count: u64,
    complained: Option<Instant>,
}

impl Output {
    fn open(recording: &Recording) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&recording.file)?;
        let (length, mode) = (file.metadata()?.len(), file.metadata()?.mode());
        if !recording.redacts && mode & 0o077 != 0 {
            tracing::warn!(
                "{} was there before (mode {:o}): others than its owner may read the requests that are recorded",
                recording.file.display(),
                mode & 0o777
            );
        }
        let mut last = [b'\n'];
        if length > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(Self {
            file,
            name: recording.file.display().to_string(),
            length,
            max: recording.max_bytes,
            full: false,
            torn: last != [b'\n'],
            lines: Vec::new(),
            count: 0,
            complained: None,
        })
    }

    /// Adds the line of a request, unless it has none. Nothing is added once a line did not fit.
    fn add(&mut self, served: &Served, key: Option<&Key>) -> bool {
        let start = self.lines.len();
        if self.torn && start == 0 {
            self.lines.push(b'\n');
        }
        let added = match key {
            None => line::plain(served, &mut self.lines),
            Some(key) => line::redacted(served, key, &mut self.lines),
        };
        let grown = (self.lines.len() - start) as u64;
        if added.is_none() || self.length + grown > self.max {
            self.lines.truncate(start);
            self.full |= added.is_some();
            if self.full {
                let Self { name, max, .. } = self;
                tracing::warn!(
                    "recording to {name} stops: the file would exceed {max} bytes (--record-max-bytes)"
                );
            }
            return added.is_some();
        }
        self.length += grown;
        self.count += 1;
        true
    }

    /// Writes what was added. Returns how many requests were lost over it.
    fn write(&mut self) -> u64 {
        let count = std::mem::take(&mut self.count);
        let result = self.file.write_all(&self.lines);
        let length = self.lines.len() as u64;
        self.lines.clear();
        let Err(error) = result else {
            self.torn &= length == 0;
            return 0;
        };
        self.torn = true;
        self.length = self.file.metadata().map_or(self.length, |data| data.len());
        let due = |at: &Instant| at.elapsed() >= ERROR_PAUSE;
        if self.complained.as_ref().is_none_or(due) {
            self.complained = Some(Instant::now());
            tracing::warn!(
                "cannot write to {}, {count} requests are not recorded: {error}",
                self.name
            );
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(text: &str) -> Served {
        Served {
            at: jiff::Timestamp::from_microsecond(1_764_480_000_000_042).unwrap(),
            path: "/v1/completions".into(),
            prompt_tokens: Some(9),
            output_tokens: None,
            body: text.to_owned().into(),
        }
    }

    fn recording(dir: &tempfile::TempDir, max_bytes: u64) -> Recording {
        Recording {
            file: dir.path().join("requests.jsonl"),
            redacts: false,
            max_bytes,
        }
    }

    const LINE: &str = "{\"at\":1764480000.000042,\"path\":\"/v1/completions\",\"prompt_tokens\":9,\"output_tokens\":null,\"body\":{\"model\": \"m\"}}\n";

    #[test]
    fn a_line_is_complete_when_the_recorder_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let recording = recording(&dir, 1 << 30);
        std::fs::write(&recording.file, "torn").unwrap();
        let lost = Counter::default();
        for _ in 0..2 {
            let recorder = Recorder::start(&recording, lost.clone()).unwrap();
            recorder.record(served("{\"model\":\n\"m\"}"));
            recorder.record(served("no JSON"));
        }
        let text = std::fs::read_to_string(&recording.file).unwrap();
        assert_eq!(text, format!("torn\n{LINE}{LINE}"));
        assert_eq!(lost.get(), 2);
    }

    #[test]
    fn the_file_never_exceeds_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let recording = recording(&dir, 2 * LINE.len() as u64 + 1);
        let lost = Counter::default();
        for _ in 0..2 {
            let recorder = Recorder::start(&recording, lost.clone()).unwrap();
            for _ in 0..9 {
                recorder.record(served("{\"model\": \"m\"}"));
            }
        }
        let text = std::fs::read_to_string(&recording.file).unwrap();
        assert_eq!((text, lost.get()), (LINE.repeat(2), 0));
    }

    #[test]
    fn what_does_not_fit_into_the_queue_is_dropped_and_counted() {
        let recorder = Recorder {
            backlog: Backlog::unwritten(MAX_WAITING),
            full: Arc::default(),
            lost: Counter::default(),
        };
        let body = "x".repeat(1 << 20);
        (0..70).for_each(|_| recorder.record(served(&body)));
        assert_eq!(recorder.lost.get(), 6);
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let lost = Counter::default();
        let full = Recording {
            file: "/dev/full".into(),
            redacts: false,
            max_bytes: 1 << 30,
        };
        let recorder = Recorder::start(&full, lost.clone()).unwrap();
        recorder.record(served("{\"model\":\"m\"}"));
        drop(recorder);
        assert_eq!(lost.get(), 1);
    }
}
