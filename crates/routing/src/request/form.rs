//! The few fields of a `multipart/form-data` body (RFC 7578) that the router needs, found without copying the files.

use super::BadRequest;
use memchr::memmem;
use std::ops::Range;

/// Where the content of the known fields is. Of several fields of one name the last counts.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) model: Option<Range<usize>>,
    pub(super) stream: Option<Range<usize>>,
}

/// The boundary of a form, or `None` when the content type is not that of a form.
pub(super) fn boundary(content_type: &str) -> Option<Result<Vec<u8>, BadRequest>> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters.as_bytes(), "boundary").filter(|b| !b.is_empty());
    Some(boundary.ok_or(BadRequest::Form {
        problem: "the content type names no boundary",
    }))
}

/// Finds the known fields.
pub(super) fn fields(boundary: &[u8], body: &[u8]) -> Result<Fields, BadRequest> {
    let delimiter = [b"\r\n--", boundary].concat();
    let finder = memmem::Finder::new(&delimiter);
    let mut found = Fields::default();
    // The first delimiter may open the body, without the line break that belongs to all others.
    let mut at = if body.starts_with(&delimiter[2..]) {
        delimiter.len() - 2
    } else {
        finder.find(body).ok_or(BadRequest::Form {
            problem: "its boundary is nowhere in the body",
        })? + delimiter.len()
    };
    while !body[at..].starts_with(b"--") {
        let line = memmem::find(&body[at..], b"\r\n").ok_or(CUT)?;
        // The line break of the delimiter is also the start of the blank line when a part has no headers.
        let head = at + line;
        let head_len = memmem::find(&body[head..], b"\r\n\r\n").ok_or(CUT)?;
        let content = head + head_len + 4;
        // The delimiter's line break may be the end of the blank line when the content is empty.
        let len = finder.find(&body[content - 2..]).ok_or(CUT)?;
        let end = (content - 2 + len).max(content);
        match field_name(&body[head..head + head_len]).as_deref() {
            Some(b"model") => found.model = Some(content..end),
            Some(b"stream") => found.stream = Some(content..end),
            _ => {}
        }
        at = content - 2 + len + delimiter.len();
    }
    Ok(found)
}

const CUT: BadRequest = BadRequest::Form {
    problem: "it ends inside a part",
};

/// The name of the field whose headers these are; `None` for files.
fn field_name(head: &[u8]) -> Option<Vec<u8>> {
    const NAME: &[u8] = b"content-disposition:";
    let line = head.split(|&b| b == b'\n').find(|line| {
        line.get(..NAME.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
    })?;
    let (kind, parameters) =
        line[NAME.len()..].split_at(memchr::memchr(b';', &line[NAME.len()..])?);
    let is_field = kind.trim_ascii().eq_ignore_ascii_case(b"form-data");
    if !is_field || parameter(parameters, "filename").is_some() {
        return None;
    }
    parameter(parameters, "name")
}

/// The value of a parameter in `; name=value; name="quoted value"`.
fn parameter(mut text: &[u8], wanted: &str) -> Option<Vec<u8>> {
    loop {
        while let [b';' | b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = text {
            text = rest;
        }
        let (name, rest) = text.split_at(text.iter().position(|&b| b == b'=' || b == b';')?);
        let (value, rest) = match rest {
            [b'=', b'"', rest @ ..] => quoted(rest)?,
            [b'=', rest @ ..] => {
                let (value, rest) =
                    rest.split_at(rest.iter().position(|&b| b == b';').unwrap_or(rest.len()));
                (value.trim_ascii().to_vec(), rest)
            }
            _ => (Vec::new(), rest),
        };
        if name.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()) {
            return Some(value);
        }
        text = rest;
    }
}

/// A quoted value, after its opening quote, and what follows it.
fn quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut bytes = text.iter().enumerate();
    while let Some((i, &byte)) = bytes.next() {
        match byte {
            b'"' => return Some((value, &text[i + 1..])),
            b'\\' => value.push(*bytes.next()?.1),
            _ => value.push(byte),
        }
    }
    None
}
