//! An answer while it grows: what every API's writer needs to know.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::{
    chat, completions, messages,
    request::{Api, Choice, Generate},
    responses,
};
use crate::{live::core::Progress, model::FinishReason};

/// One choice's progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) generated: usize,
    pub(super) cached: usize,
    pub(super) finish: Option<FinishReason>,
    /// Bytes of the text that were given out.
    shown: usize,
}

/// A request with the progress of its answer.
#[derive(Debug)]
pub(in crate::live) struct Answer {
    pub(super) request: Generate,
    /// Without the prefix that tells the API.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) fingerprint: String,
    /// Whether `prompt_tokens_details` are told.
    pub(super) details: bool,
    pub(super) block_size: usize,
    pub(super) tallies: Vec<Tally>,
    /// Events written so far, of APIs that number them.
    pub(super) sequence: u64,
}

impl Answer {
    pub(in crate::live) fn new(
        request: Generate,
        id: String,
        created: u64,
        fingerprint: String,
        details: bool,
        block_size: usize,
    ) -> Self {
        let tallies = vec![Tally::default(); request.choices.len()];
        Self {
            request,
            id,
            created,
            fingerprint,
            details,
            block_size,
            tallies,
            sequence: 0,
        }
    }

    /// Counts what happened; call before [`Answer::event`].
    pub(in crate::live) fn advance(&mut self, progress: &Progress) {
        let tally = &mut self.tallies[progress.choice];
        if let Some(index) = progress.token {
            tally.generated = index + 1;
            tally.cached = progress.cached;
        }
        tally.finish = progress.finish;
    }

    /// Whether every choice has ended.
    pub(in crate::live) fn complete(&self) -> bool {
        self.tallies.iter().all(|tally| tally.finish.is_some())
    }

    /// Events that precede the first token.
    pub(in crate::live) fn open(&mut self, out: &mut VecDeque<String>) {
        if self.request.api == Api::Responses {
            responses::open(self, out);
        }
    }

    /// Events of one step forward.
    pub(in crate::live) fn event(&mut self, progress: &Progress, out: &mut VecDeque<String>) {
        match self.request.api {
            Api::Chat => chat::event(self, progress, out),
            Api::Completions => completions::event(self, progress, out),
            Api::Responses => responses::event(self, progress, out),
            Api::Messages => messages::event(self, progress, out),
        }
    }

    /// Events after the last token.
    pub(in crate::live) fn close(&mut self, out: &mut VecDeque<String>) {
        match self.request.api {
            Api::Chat => chat::close(self, out),
            Api::Completions => completions::close(self, out),
            Api::Responses => responses::close(self, out),
            Api::Messages => messages::close(self, out),
        }
    }

    /// The whole answer, when no stream was asked for.
    pub(in crate::live) fn whole(&self) -> Value {
        match self.request.api {
            Api::Chat => chat::whole(self),
            Api::Completions => completions::whole(self),
            Api::Responses => responses::whole(self),
            Api::Messages => messages::whole(self),
        }
    }

    /// The text that a new token adds; a stop string is held back.
    pub(super) fn delta(&mut self, progress: &Progress) -> String {
        let choice = &self.request.choices[progress.choice];
        let tally = &mut self.tallies[progress.choice];
        let first = progress.token == Some(0);
        let text = visible(choice, tally.generated);
        let delta = text.get(tally.shown..).unwrap_or_default().to_owned();
        tally.shown = tally.shown.max(text.len());
        if first {
            format!("{}{delta}", choice.echo)
        } else {
            delta
        }
    }

    /// The text of a choice so far.
    pub(super) fn text(&self, choice: usize) -> String {
        let (at, tally) = (&self.request.choices[choice], &self.tallies[choice]);
        format!("{}{}", at.echo, visible(at, tally.generated))
    }

    pub(super) fn finish_reason(&self, choice: usize) -> Option<&'static str> {
        self.tallies[choice].finish.map(FinishReason::as_str)
    }

    pub(super) fn stop_reason(&self, choice: usize) -> Option<&str> {
        match self.tallies[choice].finish {
            Some(FinishReason::Stop) => self.request.choices[choice].stop_reason.as_deref(),
            _ => None,
        }
    }

    pub(super) fn generated(&self) -> usize {
        self.tallies.iter().map(|tally| tally.generated).sum()
    }

    /// Cached tokens as a whole answer tells them: of the last prompt.
    pub(super) fn cached_last(&self) -> usize {
        self.tallies.last().map_or(0, |tally| tally.cached)
    }

    /// Cached tokens as a stream tells them: of the first prompt.
    pub(super) fn cached_first(&self) -> usize {
        self.tallies.first().map_or(0, |tally| tally.cached)
    }

    /// Prompt tokens that this request added to the cache: those of its whole blocks that were not there.
    pub(super) fn written(&self) -> usize {
        let prompt = self
            .request
            .choices
            .first()
            .map_or(0, |choice| choice.prompt.len());
        (prompt / self.block_size * self.block_size).saturating_sub(self.cached_first())
    }

    /// The three sums of a usage object.
    pub(super) fn usage(&self, generated: usize) -> Value {
        let prompt = self.request.prompt_tokens;
        json!({"prompt_tokens": prompt, "total_tokens": prompt + generated, "completion_tokens": generated})
    }
}

/// The text of the first tokens of a choice, without what its stop string takes back.
fn visible(choice: &Choice, generated: usize) -> String {
    let total: usize = choice.pieces.iter().map(String::len).sum();
    let mut text: String = choice
        .pieces
        .iter()
        .take(generated)
        .map(String::as_str)
        .collect();
    text.truncate(text.len().min(total - choice.withheld));
    text
}

/// One server-sent event without a name.
pub(super) fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// One server-sent event with a name.
pub(super) fn named(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}

/// The event that ends the streams of the OpenAI APIs.
pub(super) fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}
