//! What a command prints. A reader that has seen enough, such as `head`, is no failure.

use anyhow::Context;
use std::io::{ErrorKind, Write};

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
