//! What is replayed: requests with their times, from a trace, a log of the router, or a generator.

mod content;
mod generate;
mod lines;
mod log;
mod mooncake;

pub use content::{Content, Segment};
pub(super) use content::{completion, cut};
pub use generate::{Generator, generate};

use std::io::BufRead;
use std::sync::Arc;

/// One request to come.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Seconds since the start.
    pub at: f64,
    /// The URL's path.
    pub path: Arc<str>,
    /// Its prompt, or its whole body.
    pub content: Content,
    /// What the engine will answer.
    pub answer: Segment,
}

/// Requests in order of their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Where it is from, for a person to read.
    pub name: String,
    /// In order of [`Request::at`].
    pub requests: Vec<Request>,
    /// Mean length of a token, in bytes of the rendered prompt, where the trace tells both lengths; 1 to 16. Prompts are then
    /// cut into tokens of this length. Elsewhere the stand-in tokenizer of [`crate::tokens`] cuts them.
    pub token_bytes: Option<f64>,
    /// Lines that end in the middle, from 1: whoever wrote the file was stopped, or still writes. They are left out.
    pub cut_lines: Vec<usize>,
}

/// Most tokens of a prompt: more than any engine's context, and little enough to be held in memory.
const MAX_PROMPT_TOKENS: usize = 1 << 24;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file.
    #[error("cannot read line {line}")]
    Read {
        /// From 1.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not what it must be.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is an archive.
    #[error(
        "it is compressed: unpack it first, for example gzip -dc FILE | kthena-router replay --trace -"
    )]
    Compressed,
    /// There is nothing in it.
    #[error("there is no request in it")]
    Empty,
}

/// How a workload is changed before it is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaping {
    /// How many times faster than the times say.
    pub speed: f64,
    /// Requests a second on average, with exponential gaps (a Poisson process), in place of the times of the trace.
    pub poisson: Option<f64>,
    /// Only so many of the first requests.
    pub limit: Option<usize>,
}

impl Default for Shaping {
    fn default() -> Self {
        Self {
            speed: 1.0,
            poisson: None,
            limit: None,
        }
    }
}

impl Workload {
    /// A workload of these requests, which are put in order; the first one comes at time 0.
    ///
    /// # Errors
    /// There is no request.
    pub fn new(name: impl Into<String>, mut requests: Vec<Request>) -> Result<Self, TraceError> {
        requests.sort_by(|a, b| a.at.total_cmp(&b.at));
        let start = requests.first().ok_or(TraceError::Empty)?.at;
        for request in &mut requests {
            request.at -= start;
        }
        Ok(Self {
            name: name.into(),
            requests,
            ..Self::default()
        })
    }

    /// Reads a trace of either format: a Mooncake trace, or a request log of the router. The first line that is not blank
    /// tells which. A line that ends in the middle is left out, see [`Self::cut_lines`].
    ///
    /// # Errors
    /// Names the first line that is neither.
    pub fn read(name: &str, from: impl BufRead) -> Result<Self, TraceError> {
        let mut lines = lines::Lines::new(from);
        let (requests, token_bytes) = match lines.starts_with_member("hash_ids")? {
            true => (mooncake::read(&mut lines)?, None),
            false => log::read(&mut lines)?,
        };
        Ok(Self {
            token_bytes,
            cut_lines: lines.cut(),
            ..Self::new(name, requests)?
        })
    }

    /// Changes times and length.
    pub fn shape(&mut self, shaping: &Shaping, seed: u64) {
        if let Some(limit) = shaping.limit {
            self.requests.truncate(limit);
        }
        let mut rng = crate::rng::Rng::new(seed).fork(POISSON);
        let mut at = 0.0;
        for request in &mut self.requests {
            match shaping.poisson {
                Some(rate) => {
                    request.at = at / shaping.speed;
                    at += rng.exponential(1.0 / rate);
                }
                None => request.at /= shaping.speed,
            }
        }
    }

    /// Only the first `count` requests.
    #[must_use]
    pub fn head(&self, count: usize) -> Self {
        Self {
            name: self.name.clone(),
            requests: self.requests.iter().take(count).cloned().collect(),
            token_bytes: self.token_bytes,
            cut_lines: Vec::new(),
        }
    }

    /// Seconds from the first request to the last.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.requests.last().map_or(0.0, |last| last.at)
    }
}

/// Keeps the draws of arrival times apart from all others.
const POISSON: u64 = 0x0A22_17A1;
