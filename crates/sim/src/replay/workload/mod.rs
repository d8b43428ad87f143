//! What is replayed: requests with their times, from a trace, a log of the router, or a generator.

mod content;
mod generate;
mod log;
mod mooncake;

pub(super) use content::completion;
pub use content::{Content, Segment};
pub use generate::{Generator, generate};
pub use log::read_log;
pub use mooncake::read_mooncake;

use std::io::{BufRead, Read};
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
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file.
    #[error("cannot read line {line}: {source}")]
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
        })
    }

    /// Reads a trace of either format: a Mooncake trace, or a request log of the router. The first line tells which.
    ///
    /// # Errors
    /// Names the first line that is neither.
    pub fn read(name: &str, mut from: impl BufRead) -> Result<Self, TraceError> {
        let mut first = String::new();
        from.read_line(&mut first)
            .map_err(|source| TraceError::Read { line: 1, source })?;
        let whole = std::io::Cursor::new(first.clone()).chain(from);
        let requests = match first.contains("\"hash_ids\"") {
            true => read_mooncake(whole)?,
            false => read_log(whole)?,
        };
        Self::new(name, requests)
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

    /// The requests up to `share` (0..=1) of the workload's time, and the rest, which starts at time 0 again.
    #[must_use]
    pub fn split(&self, share: f64) -> (Self, Self) {
        let end = self.requests.last().map_or(0.0, |last| last.at) * share;
        let cut = self.requests.partition_point(|request| request.at <= end);
        let (head, tail) = self.requests.split_at(cut);
        let part = |requests: &[Request], what: &str| {
            let start = requests.first().map_or(0.0, |first| first.at);
            let mut requests = requests.to_vec();
            requests.iter_mut().for_each(|request| request.at -= start);
            Self {
                name: format!("{} ({what})", self.name),
                requests,
            }
        };
        (part(head, "training part"), part(tail, "held-out part"))
    }

    /// Seconds from the first request to the last.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.requests.last().map_or(0.0, |last| last.at)
    }
}

/// Keeps the draws of arrival times apart from all others.
const POISSON: u64 = 0x0A22_17A1;

/// Reads JSON lines; blank ones are passed over.
fn json_lines<T: serde::de::DeserializeOwned>(
    from: impl BufRead,
    mut each: impl FnMut(T) -> Result<(), String>,
) -> Result<(), TraceError> {
    for (index, text) in from.lines().enumerate() {
        let line = index + 1;
        let text = text.map_err(|source| TraceError::Read { line, source })?;
        if text.trim().is_empty() {
            continue;
        }
        let value = serde_json::from_str(&text).map_err(|error| TraceError::Line {
            line,
            why: error.to_string(),
        })?;
        each(value).map_err(|why| TraceError::Line { line, why })?;
    }
    Ok(())
}
