//! A file with the requests that were served, for `replay`: one JSON line each, with the client's body as it came, or
//! with lengths and keyed hashes in place of names and texts.
//!
//! ```text
//! {"at":1764480000.123456,"path":"/v1/chat/completions","prompt_tokens":812,"output_tokens":90,"body":{…}}
//! {"at":1764480000.123456,"path":"/v1/chat/completions","prompt_tokens":812,"output_tokens":90,
//!  "redacted":{"model":"16 hex","bytes":5000,"block_bytes":64,"blocks":["16 hex",…]}}
//! ```
//!
//! A request hands its body over at its end and goes on; a thread writes. Headers are never seen here.

mod line;
mod redact;
mod writer;

use bytes::Bytes;
use std::path::PathBuf;
pub use writer::Recorder;

/// How requests are recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file. Appended to; created for its owner alone (mode 0600).
    pub file: PathBuf,
    /// Whether names and texts are replaced by lengths and keyed hashes.
    pub redacts: bool,
    /// Length of the file, in bytes, that is never exceeded.
    pub max_bytes: u64,
}

/// A request that was served.
#[derive(Debug)]
pub(crate) struct Served {
    /// Receipt.
    pub(crate) at: jiff::Timestamp,
    pub(crate) path: String,
    /// As the engine reports it.
    pub(crate) prompt_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    /// The client's JSON, decoded.
    pub(crate) body: Bytes,
}
