//! Mooncake traces: `{"timestamp", "input_length", "output_length", "hash_ids"}`, one request a line.
//!
//! Published with Qin et al., "Mooncake: Trading More Storage for Less Computation" (FAST 2025). Times are milliseconds,
//! lengths are tokens, and each id stands for 512 tokens; equal ids are equal text. The last id of a request stands for
//! what is left of its length.

use super::lines::Lines;
use super::{Content, MAX_PROMPT_TOKENS, Request, Segment, TraceError};
use crate::rng::Rng;
use serde::Deserialize;
use std::io::BufRead;
use std::sync::Arc;

/// Tokens that one id stands for.
const BLOCK_TOKENS: u32 = 512;
/// The name that these requests ask for, since the trace has none.
const MODEL: &str = "trace";
/// Keeps the text of blocks apart from that of answers.
const BLOCKS: u64 = 1;
const ANSWERS: u64 = 2;

#[derive(Deserialize)]
struct Line {
    /// Milliseconds.
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

/// Reads a trace.
///
/// # Errors
/// Names the first line that is no request.
pub(super) fn read(lines: &mut Lines<impl BufRead>) -> Result<Vec<Request>, TraceError> {
    let (model, path): (Arc<str>, Arc<str>) = (MODEL.into(), "/v1/completions".into());
    let (blocks, answers) = (Rng::new(BLOCKS), Rng::new(ANSWERS));
    let mut requests = Vec::new();
    lines.read(|line: Line| {
        if !line.timestamp.is_finite() {
            return Err("timestamp must be a number of milliseconds".into());
        }
        if line.input_length == 0 || line.hash_ids.is_empty() {
            return Err("a request has at least one token and one hash id".into());
        }
        if line.input_length as usize > MAX_PROMPT_TOKENS {
            return Err(format!(
                "{} tokens are more than a prompt may have ({MAX_PROMPT_TOKENS})",
                line.input_length
            ));
        }
        let mut left = line.input_length;
        let mut segments = Vec::with_capacity(line.hash_ids.len());
        for id in &line.hash_ids {
            let tokens = left.min(BLOCK_TOKENS);
            left -= tokens;
            if tokens > 0 {
                segments.push(Segment {
                    seed: blocks.fork(*id).next_u64(),
                    tokens,
                });
            }
        }
        if left > 0 {
            let ids = line.hash_ids.len();
            return Err(format!(
                "{ids} hash ids of {BLOCK_TOKENS} tokens cannot be {} tokens",
                line.input_length
            ));
        }
        requests.push(Request {
            at: line.timestamp / 1000.0,
            path: Arc::clone(&path),
            content: Content::Made {
                model: Arc::clone(&model),
                segments,
            },
            answer: Segment {
                seed: answers.fork(requests.len() as u64).next_u64(),
                tokens: line.output_length.max(1),
            },
        });
        Ok(())
    })?;
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Request>, TraceError> {
        super::read(&mut Lines::new(text.as_bytes()))
    }

    #[test]
    fn equal_ids_are_equal_text_and_the_last_block_is_what_is_left() {
        let requests = read(
            "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 1]}\n\n\
             {\"timestamp\": 1500, \"input_length\": 1024, \"output_length\": 0, \"hash_ids\": [0, 2]}\n",
        )
        .unwrap();
        let segments = |at: usize| match &requests[at].content {
            Content::Made { segments, .. } => segments.clone(),
            Content::Body(_) => panic!("a trace has no bodies"),
        };
        assert_eq!(segments(0)[0], segments(1)[0]);
        assert_ne!(segments(0)[1].seed, segments(1)[1].seed);
        assert_eq!(segments(0)[1].tokens, 188);
        assert_eq!(requests[1].at, 1.5);
        assert_eq!(
            requests[1].answer.tokens, 1,
            "an engine generates one token at least"
        );
    }

    #[test]
    fn a_line_that_is_no_request_is_named() {
        let good =
            "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 5, \"hash_ids\": [0]}\n";
        for (bad, says) in [
            ("{\"timestamp\": 0}", "line 2: missing field"),
            ("not json", "line 2: expected"),
            (
                "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [0]}",
                "line 2: 1 hash ids of 512 tokens cannot be 513 tokens",
            ),
            (
                "{\"timestamp\": 0, \"input_length\": 0, \"output_length\": 5, \"hash_ids\": []}",
                "line 2: a request has at least one token",
            ),
        ] {
            let error = read(&format!("{good}{bad}")).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
