//! A line that moves on a terminal; a few lines elsewhere.

use sim::load::Progress as At;
use std::io::{IsTerminal, Write};

/// Cells of the bar.
const WIDTH: usize = 24;
/// Lines of a pass where output is no terminal.
const LINES: u64 = 4;

/// Shows how far a pass is.
pub(super) struct Progress {
    name: &'static str,
    terminal: bool,
    lines: u64,
}

impl Progress {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            terminal: std::io::stdout().is_terminal(),
            lines: 0,
        }
    }

    #[allow(clippy::print_stdout, reason = "progress is for the person who waits")]
    pub(super) fn show(&mut self, at: &At) {
        let text = text(self.name, at);
        if self.terminal {
            print!("\r{text}\x1b[K");
            let _ = std::io::stdout().flush();
        } else if at.ended * LINES >= (self.lines + 1) * at.planned {
            self.lines = at.ended * LINES / at.planned.max(1);
            println!("{text}");
        }
    }

    #[allow(clippy::print_stdout, reason = "progress is for the person who waits")]
    pub(super) fn done(&self) {
        if self.terminal {
            println!();
        }
    }
}

fn text(name: &str, at: &At) -> String {
    let planned = at.planned.max(1);
    let full = usize::try_from(at.ended * WIDTH as u64 / planned)
        .unwrap_or(WIDTH)
        .min(WIDTH);
    let cached = at.cached_tokens * 100 / at.prompt_tokens.max(1);
    format!(
        "  {name:<16} {}{} {:>4}/{planned} requests, {cached:>2} % of prompt tokens cached",
        "█".repeat(full),
        "░".repeat(WIDTH - full),
        at.ended,
    )
}
