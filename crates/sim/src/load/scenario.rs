//! What is played.

use std::time::Duration;

use crate::{model::EngineParams, rng::Rng, words::Prose};

/// Who asks what. Token counts are the stand-in tokenizer's (about 4 bytes a token).
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Model to ask for.
    pub model: String,
    /// Groups of users; each has a system prompt of its own.
    pub groups: usize,
    /// Conversations in all; the group of each is drawn.
    pub users: usize,
    /// Questions of one conversation.
    pub turns: usize,
    /// Tokens of a system prompt.
    pub system_tokens: usize,
    /// Least and most tokens of a question.
    pub question_tokens: (usize, usize),
    /// Least and most tokens of an answer (`max_tokens`).
    pub answer_tokens: (usize, usize),
    /// New conversations a second; 0 starts all at once.
    pub arrivals_per_second: f64,
    /// Mean time between an answer's end and the next question.
    pub think_time: Duration,
    /// A request without its end after this long counts as an error.
    pub timeout: Duration,
    /// `host:port` of engines whose counters tell each one's share; may be empty.
    pub engines: Vec<String>,
}

impl Scenario {
    /// About ten seconds that show what a router's choice is worth, on 4 engines of [`demo_engine`].
    ///
    /// 12 system prompts of 3,000 tokens are 36,000 tokens; an engine's pool holds 16,000. A router that spreads users
    /// blindly makes every engine want all 12; one that keeps a group together needs 3 or 4 on each. The load leaves the
    /// engines of the blind router busy about half of the time, not overloaded.
    ///
    /// Measured with a forwarder of a few lines instead of a router, seeds 1 to 3, twelve runs on two busy cores: by chance
    /// 36 to 48 % of prompt tokens are cached and the mean TTFT is 0.29 to 0.47 s; by a hash of the prompt's first
    /// kilobyte 85 to 87 % and 0.08 to 0.10 s. 9 to 11 s and 7 to 8 s a run.
    #[must_use]
    pub fn demo(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            groups: 12,
            users: 30,
            turns: 3,
            system_tokens: 3_000,
            question_tokens: (20, 60),
            answer_tokens: (16, 40),
            arrivals_per_second: 6.0,
            think_time: Duration::from_millis(250),
            timeout: Duration::from_secs(30),
            engines: Vec::new(),
        }
    }

    /// About ten seconds that show what prefill does to answers under way on the same engine, on 4 engines of
    /// [`demo_engine`].
    ///
    /// Every question is a long text of its own, so nothing is cached: 3,000 tokens are a quarter of a second of computing,
    /// in which an engine that does both gives nobody a token. Four a second keep two prefill engines busy about half of
    /// the time.
    #[must_use]
    pub fn long_prompts(model: &str) -> Self {
        Self {
            groups: 1,
            users: 36,
            turns: 1,
            system_tokens: 16,
            question_tokens: (2_500, 3_500),
            answer_tokens: (80, 120),
            arrivals_per_second: 4.0,
            ..Self::demo(model)
        }
    }

    /// The system prompt of each group.
    pub(super) fn system_prompts(&self, seed: u64) -> Vec<String> {
        let root = Rng::new(seed);
        let prompt =
            |group| Prose::new(root.fork(group as u64).next_u64()).text(self.system_tokens);
        (0..self.groups.max(1)).map(prompt).collect()
    }

    /// The users in order of arrival.
    pub(super) fn users(&self, seed: u64) -> Vec<User> {
        /// Keeps the users' draws apart from the groups'.
        const USERS: u64 = 1 << 32;
        let root = Rng::new(seed);
        let mut rng = root.fork(USERS);
        let mut at = 0.0;
        (0..self.users)
            .map(|number| {
                if self.arrivals_per_second > 0.0 {
                    at += rng.exponential(1.0 / self.arrivals_per_second);
                }
                let arrives = Duration::from_secs_f64(at);
                User {
                    arrives,
                    group: rng.below(self.groups.max(1)),
                    rng: root.fork(USERS + 1 + number as u64),
                }
            })
            .collect()
    }
}

/// One conversation to be held.
#[derive(Clone, Debug)]
pub(super) struct User {
    /// Since the start.
    pub(super) arrives: Duration,
    pub(super) group: usize,
    pub(super) rng: Rng,
}

impl User {
    /// The next question and the limit of its answer's tokens.
    pub(super) fn question(&mut self, scenario: &Scenario) -> (String, usize) {
        let (low, high) = scenario.question_tokens;
        let length = self.rng.between(low, high);
        let text = Prose::new(self.rng.next_u64()).text(length);
        let (low, high) = scenario.answer_tokens;
        (text, self.rng.between(low, high))
    }

    pub(super) fn think(&mut self, scenario: &Scenario) -> Duration {
        Duration::from_secs_f64(self.rng.exponential(scenario.think_time.as_secs_f64()))
    }
}

/// The engine of the demo: [`EngineParams::datacentre_7b`] with a pool of 16,000 tokens.
///
/// The speed is the preset's. The pool is smaller because the demo's load is: a real service has hundreds of system
/// prompts and long histories for its 100,000 tokens.
#[must_use]
pub fn demo_engine() -> EngineParams {
    EngineParams {
        num_blocks: 1_001,
        max_model_len: 8_192,
        ..EngineParams::datacentre_7b()
    }
}
