//! The router's own log of requests, written with `--record-requests`: whole bodies, or only lengths and keyed hashes.

use super::content::TOKEN_BYTES;
use super::{Content, Request, Segment, TraceError, json_lines};
use crate::rng::Rng;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::BufRead;
use std::sync::Arc;

/// Tokens of an answer where neither the log nor the request tells how many.
const USUAL_ANSWER: u32 = 128;
/// Keeps the text of answers apart from that of prompts.
const ANSWERS: u64 = 3;

#[derive(Deserialize)]
struct Line {
    /// Unix seconds.
    at: f64,
    path: String,
    output_tokens: Option<u32>,
    body: Option<Box<RawValue>>,
    redacted: Option<Redacted>,
}

#[derive(Deserialize)]
struct Redacted {
    model: String,
    /// Of the prompt.
    bytes: usize,
    block_bytes: usize,
    /// Chained keyed hashes, 16 hex digits each.
    blocks: Vec<String>,
}

/// The limits of an answer, in the spelling of each API.
#[derive(Deserialize)]
struct Limits {
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    max_output_tokens: Option<u32>,
}

/// Reads a log.
///
/// # Errors
/// Names the first line that is no request.
pub fn read_log(from: impl BufRead) -> Result<Vec<Request>, TraceError> {
    let answers = Rng::new(ANSWERS);
    let mut requests: Vec<Request> = Vec::new();
    json_lines(from, |line: Line| {
        if !line.at.is_finite() {
            return Err("at must be a time in seconds".into());
        }
        let (content, path, limit) = match (line.body, line.redacted) {
            (Some(body), _) => {
                let limit = asked(body.get());
                let body = Bytes::from(body.get().to_owned());
                (Content::Body(body), Arc::from(line.path), limit)
            }
            (None, Some(redacted)) => (made(&redacted)?, "/v1/completions".into(), None),
            (None, None) => return Err("a request has a body, or is redacted".into()),
        };
        let tokens = line.output_tokens.or(limit).unwrap_or(USUAL_ANSWER);
        requests.push(Request {
            at: line.at,
            path,
            content,
            answer: Segment {
                seed: answers.fork(requests.len() as u64).next_u64(),
                tokens: tokens.max(1),
            },
        });
        Ok(())
    })?;
    Ok(requests)
}

/// The most tokens that a body asks for, if it does.
fn asked(body: &str) -> Option<u32> {
    let limits: Limits = serde_json::from_str(body).ok()?;
    let either = limits.max_completion_tokens.or(limits.max_tokens);
    either.or(limits.max_output_tokens)
}

/// A prompt that shares with others what the hashes say. Lengths are rounded up to whole tokens of made text.
fn made(redacted: &Redacted) -> Result<Content, String> {
    let size = redacted.block_bytes;
    if size == 0 || redacted.blocks.len() != redacted.bytes.div_ceil(size) {
        return Err(format!(
            "{} blocks of {size} bytes cannot be {} bytes",
            redacted.blocks.len(),
            redacted.bytes
        ));
    }
    let mut left = redacted.bytes;
    let mut segments = Vec::with_capacity(redacted.blocks.len());
    for hash in &redacted.blocks {
        let seed = u64::from_str_radix(hash, 16).map_err(|_| format!("{hash:?} is no hash"))?;
        let tokens = left.min(size).div_ceil(TOKEN_BYTES);
        segments.push(Segment {
            seed,
            tokens: u32::try_from(tokens).map_err(|_| "a block is too long".to_owned())?,
        });
        left = left.saturating_sub(size);
    }
    Ok(Content::Made {
        model: Arc::from(redacted.model.as_str()),
        segments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_kept_as_it_was_and_its_limit_is_the_answer_where_usage_is_unknown() {
        let body =
            r#"{"model":"m", "max_tokens": 9,"messages":[{"role":"user","content":"h\u00e9"}]}"#;
        let log = format!(
            "{{\"at\":10.5,\"path\":\"/v1/chat/completions\",\"prompt_tokens\":4,\"output_tokens\":null,\"body\":{body}}}\n\
             {{\"at\":11,\"path\":\"/v1/chat/completions\",\"output_tokens\":3,\"body\":{body}}}\n\
             {{\"at\":12,\"path\":\"/v1/chat/completions\",\"body\":{{\"model\":\"m\"}}}}\n"
        );
        let requests = read_log(log.as_bytes()).unwrap();
        assert_eq!(
            requests[0].content,
            Content::Body(Bytes::from(body.to_owned()))
        );
        let lengths: Vec<u32> = requests.iter().map(|r| r.answer.tokens).collect();
        assert_eq!(lengths, [9, 3, USUAL_ANSWER]);
    }

    #[test]
    fn a_redacted_prompt_shares_what_its_hashes_share() {
        let line = |blocks: &str, bytes: usize| {
            format!(
                "{{\"at\":1,\"path\":\"/v1/chat/completions\",\"output_tokens\":3,\
                 \"redacted\":{{\"model\":\"00000000000000aa\",\"bytes\":{bytes},\"block_bytes\":64,\"blocks\":{blocks}}}}}\n"
            )
        };
        let log = line("[\"0000000000000001\",\"0000000000000002\"]", 100)
            + &line("[\"0000000000000001\",\"0000000000000003\"]", 128);
        let requests = read_log(log.as_bytes()).unwrap();
        let Content::Made { segments, .. } = &requests[0].content else {
            panic!("redacted");
        };
        let tokens: Vec<u32> = segments.iter().map(|s| s.tokens).collect();
        assert_eq!(tokens, [16, 9], "100 bytes are 64 and 36");
        let Content::Made {
            segments: other, ..
        } = &requests[1].content
        else {
            panic!("redacted");
        };
        assert_eq!(segments[0], other[0]);

        let wrong = read_log(line("[\"0000000000000001\"]", 100).as_bytes()).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 1: 1 blocks of 64 bytes cannot be 100 bytes"
        );
        let wrong = read_log(&b"{\"at\":1,\"path\":\"/v1/completions\"}"[..]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 1: a request has a body, or is redacted"
        );
    }
}
