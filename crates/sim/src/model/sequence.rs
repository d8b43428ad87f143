//! One request inside the engine.

use super::pool::BlockId;

/// Names a request; the caller chooses it, unique among the unfinished ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended the answer, or a stop string did.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The engine gave the request up.
    Abort,
}

impl FinishReason {
    /// As the API and the metrics spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
        }
    }
}

/// A request as the engine takes it. What it will generate is known beforehand; when it does so is what is simulated.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The name of the request.
    pub id: RequestId,
    /// Prompt tokens, at least one.
    pub prompt: Vec<u32>,
    /// Tokens it will generate, at least one.
    pub answer: Vec<u32>,
    /// How the answer ends.
    pub finish: FinishReason,
    /// Separates its cache from that of requests with another salt; 0 for none.
    pub salt: u64,
    /// The prompt's keys and values come from another engine, at no cost here, but for the last token's.
    pub transferred: bool,
}

/// A request with its place in the cache and its progress.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) id: RequestId,
    /// Prompt and the tokens generated so far.
    pub(super) tokens: Vec<u32>,
    pub(super) prompt_len: usize,
    pub(super) answer: Vec<u32>,
    pub(super) finish: FinishReason,
    pub(super) salt: u64,
    /// As long as its keys and values are still to arrive from another engine.
    pub(super) transferred: bool,
    pub(super) hashes: Vec<u64>,
    pub(super) blocks: Vec<BlockId>,
    /// Tokens whose keys and values are in `blocks`.
    pub(super) computed: usize,
    /// Tokens being computed in the current step.
    pub(super) scheduled: usize,
    /// Prompt tokens found in the cache, or transferred, at the first admission.
    pub(super) cached: Option<usize>,
    pub(super) preemptions: u32,
    pub(super) arrived: f64,
    pub(super) admitted: f64,
    pub(super) first_token: f64,
    pub(super) last_token: f64,
}

impl Sequence {
    pub(super) fn new(submission: Submission, now: f64) -> Self {
        Self {
            id: submission.id,
            prompt_len: submission.prompt.len(),
            tokens: submission.prompt,
            answer: submission.answer,
            finish: submission.finish,
            salt: submission.salt,
            transferred: submission.transferred,
            hashes: Vec::new(),
            blocks: Vec::new(),
            computed: 0,
            scheduled: 0,
            cached: None,
            preemptions: 0,
            arrived: now,
            admitted: now,
            first_token: now,
            last_token: now,
        }
    }

    pub(super) fn generated(&self) -> usize {
        self.tokens.len() - self.prompt_len
    }

    /// Tokens that must be computed before the next one can be generated.
    pub(super) fn missing(&self) -> usize {
        self.tokens.len() - self.computed
    }
}
