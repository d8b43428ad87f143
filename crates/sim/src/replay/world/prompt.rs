//! What a router reads of a request, and what an engine computes for it.

use crate::replay::workload::{Content, Request, Segment, Workload, completion, cut};
use crate::tokens;
use routing::request::{ModelRequest, extract};
use xxhash_rust::xxh3::xxh3_64;

/// A prompt for an engine.
#[derive(Clone, Debug, Default)]
pub(in crate::replay) struct Prompt {
    /// At least one.
    pub(in crate::replay) tokens: Vec<u32>,
    /// Its length as the router renders it.
    pub(in crate::replay) bytes: usize,
    /// Keeps the models' cache entries apart.
    pub(in crate::replay) salt: u64,
}

/// The body as the router gets it, in `made` if it must be made.
pub(super) fn body<'r>(request: &'r Request, made: &'r mut Vec<u8>) -> &'r [u8] {
    match &request.content {
        Content::Body(body) => body,
        Content::Made { model, segments } => {
            completion(model, segments, made);
            made
        }
    }
}

impl Prompt {
    pub(super) fn new(workload: &Workload, request: &Request, read: &ModelRequest<'_>) -> Self {
        let salt = xxh3_64(read.model.as_bytes());
        let (mut tokens, bytes) = match (&request.content, workload.token_bytes) {
            (_, Some(length)) => {
                let bytes = read.prompt.bytes();
                (cut(&bytes, length), bytes.len())
            }
            (Content::Made { segments, .. }, None) => made(segments),
            (Content::Body(_), None) => {
                let text = read.prompt.text();
                (tokens::encode(&text), text.len())
            }
        };
        if tokens.is_empty() {
            // An image or a recording, of which there is no text, is something to an engine nevertheless.
            tokens.push(0);
        }
        Self {
            tokens,
            bytes,
            salt,
        }
    }

    /// Once more, for another pod.
    pub(super) fn again(workload: &Workload, request: &Request) -> Self {
        let mut made = Vec::new();
        let body = body(request, &mut made);
        let read = extract(&request.path, None, body);
        read.map(|read| Self::new(workload, request, &read))
            .unwrap_or_default()
    }
}

/// Tokens and length in bytes.
fn made(segments: &[Segment]) -> (Vec<u32>, usize) {
    let mut tokens = Vec::new();
    let mut bytes = 0;
    for segment in segments {
        segment.tokens(&mut tokens);
        bytes += segment.bytes();
    }
    (tokens, bytes)
}
