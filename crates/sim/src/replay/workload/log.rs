//! The router's own log of requests, written with `--record-requests`: whole bodies, or only lengths and keyed hashes.

use super::content::TOKEN_BYTES;
use super::lines::Lines;
use super::{Content, MAX_PROMPT_TOKENS, Request, Segment, TraceError};
use crate::rng::Rng;
use bytes::Bytes;
use routing::request::extract;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::BufRead;
use std::ops::ControlFlow;
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
    /// As the engine reported them.
    prompt_tokens: Option<u64>,
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

/// Prompts whose length is known in both units.
#[derive(Default)]
struct Lengths {
    bytes: u64,
    tokens: u64,
}

impl Lengths {
    fn add(&mut self, bytes: usize, tokens: u64) {
        // An empty prompt has no bytes, and its tokens are those of the model's template.
        if bytes > 0 && tokens > 0 {
            self.bytes += bytes as u64;
            self.tokens = self.tokens.saturating_add(tokens);
        }
    }

    /// Bytes of a token on average, within what tokenizers do to text: what is beyond counts something else, such as images.
    fn ratio(&self) -> Option<f64> {
        (self.tokens > 0).then(|| (self.bytes as f64 / self.tokens as f64).clamp(1.0, 16.0))
    }
}

/// Reads a log. Returns its requests, and how many bytes a token has where the engines told.
///
/// # Errors
/// Names the first line that is no request.
pub(super) fn read(
    lines: &mut Lines<impl BufRead>,
) -> Result<(Vec<Request>, Option<f64>), TraceError> {
    let answers = Rng::new(ANSWERS);
    let mut requests: Vec<Request> = Vec::new();
    let mut lengths = Lengths::default();
    lines.read(|line: Line| {
        if !line.at.is_finite() {
            return Err("at must be a time in seconds".into());
        }
        let (content, path, limit, bytes) = match (line.body, line.redacted) {
            (Some(body), _) => {
                let limit = asked(body.get());
                let body = Bytes::from(body.get().to_owned());
                let bytes = prompt_bytes(&line.path, &body);
                (Content::Body(body), Arc::from(line.path), limit, bytes)
            }
            (None, Some(redacted)) => {
                let content = made(&redacted)?;
                (content, "/v1/completions".into(), None, redacted.bytes)
            }
            (None, None) => return Err("a request has a body, or is redacted".into()),
        };
        if let Some(tokens) = line.prompt_tokens {
            lengths.add(bytes, tokens);
        }
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
    Ok((requests, lengths.ratio()))
}

/// Length of a prompt as the router renders it; 0 of a body that it refuses.
fn prompt_bytes(path: &str, body: &[u8]) -> usize {
    let mut bytes = 0;
    if let Ok(request) = extract(path, None, body) {
        request.prompt.walk(|piece| {
            bytes += piece.len();
            ControlFlow::Continue(())
        });
    }
    bytes
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
    if redacted.bytes > MAX_PROMPT_TOKENS * TOKEN_BYTES {
        return Err(format!(
            "{} bytes are more than a prompt may have ({})",
            redacted.bytes,
            MAX_PROMPT_TOKENS * TOKEN_BYTES
        ));
    }
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

    fn read_log(from: &[u8]) -> Result<(Vec<Request>, Option<f64>), TraceError> {
        read(&mut Lines::new(from))
    }

    #[test]
    fn a_token_is_as_long_as_the_engines_said() {
        let line = |prompt: &str, tokens: &str| {
            format!(
                "{{\"at\":1,\"path\":\"/v1/completions\",\"prompt_tokens\":{tokens},\"body\":{{\"model\":\"m\",\"prompt\":\"{prompt}\"}}}}\n"
            )
        };
        let log = line(&"x".repeat(90), "30") + &line("", "7") + &line("unknown", "null");
        let (_, bytes) = read_log(log.as_bytes()).unwrap();
        assert_eq!(bytes, Some(3.0));
        let (_, bytes) = read_log(line("unknown", "null").as_bytes()).unwrap();
        assert_eq!(bytes, None);
        let (_, bytes) = read_log(line("an image", "4000").as_bytes()).unwrap();
        assert_eq!(bytes, Some(1.0), "no token is shorter");
        let (_, bytes) = read_log(line(&"x".repeat(900), "3").as_bytes()).unwrap();
        assert_eq!(bytes, Some(16.0), "nor longer");
        let redacted = "{\"at\":1,\"path\":\"/v1/completions\",\"prompt_tokens\":20,\
             \"redacted\":{\"model\":\"m\",\"bytes\":100,\"block_bytes\":64,\"blocks\":[\"1\",\"2\"]}}";
        let (_, bytes) = read_log(redacted.as_bytes()).unwrap();
        assert_eq!(bytes, Some(5.0));
    }

    #[test]
    fn a_body_is_kept_as_it_was_and_its_limit_is_the_answer_where_usage_is_unknown() {
        let body =
            r#"{"model":"m", "max_tokens": 9,"messages":[{"role":"user","content":"h\u00e9"}]}"#;
        let log = format!(
            "{{\"at\":10.5,\"path\":\"/v1/chat/completions\",\"prompt_tokens\":4,\"output_tokens\":null,\"body\":{body}}}\n\
             {{\"at\":11,\"path\":\"/v1/chat/completions\",\"output_tokens\":3,\"body\":{body}}}\n\
             {{\"at\":12,\"path\":\"/v1/chat/completions\",\"body\":{{\"model\":\"m\"}}}}\n"
        );
        let (requests, _) = read_log(log.as_bytes()).unwrap();
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
        let (requests, _) = read_log(log.as_bytes()).unwrap();
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
        let wrong = read_log(b"{\"at\":1,\"path\":\"/v1/completions\"}").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "line 1: a request has a body, or is redacted"
        );
    }
}
