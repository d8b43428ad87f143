//! Bytes of a YAML or JSON file to [`Node`]s, with bounded memory and without a panic.
//!
//! JSON is read by the same parser, as YAML 1.2 contains it.

use crate::node::Node;
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{MessageFormatter, Options, UserMessageFormatter};

/// Largest file that is read, in bytes. A ConfigMap holds at most 1 MiB, so this is far beyond real manifests.
pub(crate) const MAX_FILE_BYTES: usize = 16 << 20;

/// Most keys, values and brackets that aliases may repeat in a file: labels for tens of thousands of endpoints.
const MAX_REPEATED: usize = 200_000;

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Line, from 1; 0 when unknown.
    pub(crate) line: u32,
    pub(crate) message: String,
}

/// All documents of a text that are not empty, in order.
///
/// # Errors
/// The first place where the text is no YAML, holds a key twice, or is beyond a limit.
pub(crate) fn documents(bytes: &[u8]) -> Result<Vec<Node>, SyntaxError> {
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20);
        return Err(SyntaxError { line: 0, message });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = &bytes[..e.valid_up_to()];
        SyntaxError {
            line: line_at(before),
            message: "the text is not UTF-8".to_owned(),
        }
    })?;
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|e| SyntaxError {
        line: e
            .location()
            .map_or(0, |at| u32::try_from(at.line()).unwrap_or(u32::MAX)),
        message: one_line(&e),
    })
}

fn options() -> Options {
    serde_saphyr::options! {
        // YAML 1.2: a namespace may be called `n` and a label `no`.
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        budget: serde_saphyr::budget! {
            max_documents: 65_536,
            max_nodes: 1_000_000,
            max_events: 4_000_000,
            // Counts what aliases repeat, so a short text cannot become a long one.
            max_total_scalar_bytes: 4 * MAX_FILE_BYTES,
            // A hundred endpoints may share the labels of one anchor.
            enforce_alias_anchor_ratio: false,
            max_recorded_anchor_events: MAX_REPEATED,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
    }
}

/// The message without the source excerpt: that could show a Secret's value in a log.
fn one_line(error: &serde_saphyr::Error) -> String {
    let message = UserMessageFormatter.format_message(error.without_snippet());
    message
        .escape_debug()
        .to_string()
        .replace("\\\"", "\"")
        .replace("\\'", "'")
}

fn line_at(before: &[u8]) -> u32 {
    let newlines = before.iter().filter(|&&b| b == b'\n').count();
    u32::try_from(newlines + 1).unwrap_or(u32::MAX)
}
