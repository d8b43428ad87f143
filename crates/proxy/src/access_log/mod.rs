//! The access log: one line per `/v1/` request, text or JSON.

mod line;
mod writer;

pub use line::{Entry, Failure, Timings};
pub use writer::LogWriter;

/// How a line is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `[time] "POST /v1/chat/completions HTTP/1.1" 200 …`
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, appended to.
    File(std::path::PathBuf),
}
