//! One line of a recording.

use super::Served;
use super::redact::{Key, Redacted};
use routing::request::{Api, extract};
use serde::Serialize;
use serde_json::value::RawValue;

/// What a line says of every request.
#[derive(Serialize)]
struct Line<'a, C: Serialize> {
    at: &'a RawValue,
    path: &'a str,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(flatten)]
    content: C,
}

#[derive(Serialize)]
struct Redaction {
    redacted: Redacted,
}

/// The line with the client's body as it came, but for line ends between its members, which become spaces. `None` if it is
/// no JSON.
pub(super) fn plain(served: &Served, out: &mut Vec<u8>) -> Option<()> {
    let body: &RawValue = serde_json::from_slice(&served.body).ok()?;
    write(served, &served.path, NoContent {}, out)?;
    // Instead of the closing brace.
    out.truncate(out.len() - 1);
    out.extend_from_slice(b",\"body\":");
    // Within a string of JSON a line end is always escaped.
    let one_line = |&byte: &u8| {
        if matches!(byte, b'\n' | b'\r') {
            b' '
        } else {
            byte
        }
    };
    out.extend(body.get().as_bytes().iter().map(one_line));
    out.extend_from_slice(b"}\n");
    Some(())
}

#[derive(Serialize)]
struct NoContent {}

/// The line with lengths and hashes only. `None` if the body is none that can be scheduled. A path that is none of the known
/// ones may hold names, so it is told as `other`.
pub(super) fn redacted(served: &Served, key: &Key, out: &mut Vec<u8>) -> Option<()> {
    let request = extract(&served.path, None, &served.body).ok()?;
    let redacted = Redacted::new(key, &request);
    let path = Api::of(&served.path).label();
    write(served, path, Redaction { redacted }, out)?;
    out.push(b'\n');
    Some(())
}

fn write(served: &Served, path: &str, content: impl Serialize, out: &mut Vec<u8>) -> Option<()> {
    let micros = served.at.as_microsecond();
    let at = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let line = Line {
        at: &RawValue::from_string(at).ok()?,
        path,
        prompt_tokens: served.prompt_tokens,
        output_tokens: served.output_tokens,
        content,
    };
    serde_json::to_writer(out, &line).ok()
}
