//! A line that moves while a replay runs; nothing where no terminal looks. On standard error, so that the outcome can be piped.

use parking_lot::Mutex;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Cells of the bar.
const WIDTH: usize = 30;
/// Time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(80);

/// How far one replay is.
pub(super) struct Bar<'n> {
    name: &'n str,
    planned: u64,
    line: Line,
}

impl<'n> Bar<'n> {
    pub(super) fn new(name: &'n str, planned: u64) -> Self {
        Self {
            name,
            planned: planned.max(1),
            line: Line::default(),
        }
    }

    pub(super) fn show(&mut self, ended: u64) {
        let full = ended * WIDTH as u64 / self.planned;
        let full = usize::try_from(full).unwrap_or(WIDTH).min(WIDTH);
        self.line.show(&format!(
            "{:<16} {}{} {ended:>6}/{} requests",
            self.name,
            "█".repeat(full),
            "░".repeat(WIDTH - full),
            self.planned,
        ));
    }

    pub(super) fn clear(&self) {
        self.line.clear();
    }
}

/// A line of text.
#[derive(Default)]
pub(super) struct Line {
    shown: Mutex<Option<Instant>>,
}

impl Line {
    pub(super) fn show(&self, text: &str) {
        let mut shown = self.shown.lock();
        let fresh = shown.is_some_and(|at| at.elapsed() < PAUSE);
        if !fresh && std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "\r  {text}\x1b[K");
            *shown = Some(Instant::now());
        }
    }

    pub(super) fn clear(&self) {
        if self.shown.lock().take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
