//! Made workloads, each with the sharing that a kind of service has.

use super::{Content, Request, Segment, Workload};
use crate::rng::Rng;
use std::str::FromStr;
use std::sync::Arc;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Groups of requests that share a long system prompt, longer than the default settings hash, and differ after it: agents with
    /// tools, retrieval with fixed instructions.
    SharedPrefix,
    /// Few prompts that come again and again as they are, with a new end: templates, evaluations.
    Repetition,
    /// Conversations that grow by their answers, in groups that share a system prompt.
    Chat,
    /// No two requests share anything.
    NoSharing,
    /// Many requests at one moment that share a long context which is new: the fan-out of an agent.
    Siblings,
}

/// Every generator with its name on the command line.
const NAMES: [(&str, Generator); 5] = [
    ("shared-prefix", Generator::SharedPrefix),
    ("prefix-repetition", Generator::Repetition),
    ("chat", Generator::Chat),
    ("no-sharing", Generator::NoSharing),
    ("siblings", Generator::Siblings),
];

impl Generator {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(_, generator)| *generator == self);
        named.map_or("", |(name, _)| name)
    }
}

impl FromStr for Generator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, generator)| *generator).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("unknown generator {text:?}: one of {}", known.join(", "))
        })
    }
}

/// Sizes of one kind of traffic.
struct Mix {
    /// Things that many requests share.
    groups: usize,
    /// Tokens of such a thing.
    shared: u32,
    /// Least and most tokens that a request has of its own.
    own: (usize, usize),
    /// Least and most tokens of an answer.
    answer: (usize, usize),
    /// Requests of one group that come together: turns of a chat, siblings of a burst.
    together: usize,
}

impl Generator {
    fn mix(self) -> Mix {
        match self {
            // 24 KiB of system prompt: three times what the default settings hash.
            Self::SharedPrefix => Mix {
                groups: 32,
                shared: 6_000,
                own: (100, 400),
                answer: (50, 300),
                together: 1,
            },
            Self::Repetition => Mix {
                groups: 200,
                shared: 1_500,
                own: (10, 60),
                answer: (20, 120),
                together: 1,
            },
            Self::Chat => Mix {
                groups: 24,
                shared: 1_000,
                own: (30, 200),
                answer: (50, 350),
                together: 6,
            },
            Self::NoSharing => Mix {
                groups: 0,
                shared: 0,
                own: (500, 4_000),
                answer: (50, 300),
                together: 1,
            },
            Self::Siblings => Mix {
                groups: 4,
                shared: 4_000,
                own: (100, 300),
                answer: (50, 200),
                together: 12,
            },
        }
    }
}

/// The model that made requests ask for.
const MODEL: &str = "generated";
/// Mean time in which a person reads an answer and writes the next question, seconds.
const THINK: f64 = 20.0;
/// What a chat takes for granted as the time of its answers, seconds a token.
const SECONDS_A_TOKEN: f64 = 0.02;
/// Time over which the siblings of a burst arrive, seconds.
const BURST: f64 = 0.2;

/// `count` requests of a kind, `rate` a second on average with exponential gaps between those that do not belong together.
/// Turns of a chat follow one another by thinking time, siblings come within a fifth of a second.
#[must_use]
pub fn generate(generator: Generator, count: usize, rate: f64, seed: u64) -> Workload {
    let mix = generator.mix();
    let root = Rng::new(seed);
    let mut draw = root.fork(1);
    let shared = |group: usize| Segment {
        seed: root.fork(GROUPS + group as u64).next_u64(),
        tokens: mix.shared,
    };
    let mut requests = Vec::with_capacity(count);
    let mut at = 0.0;
    while requests.len() < count {
        at += draw.exponential(mix.together as f64 / rate);
        let mut prompt = Vec::new();
        if mix.shared > 0 {
            prompt.push(shared(draw.below(mix.groups)));
        }
        if generator == Generator::Siblings {
            // Shared by this burst only.
            prompt.push(segment(&mut draw, (2_000, 6_000)));
        }
        let mut when = at;
        for _ in 0..mix.together.min(count - requests.len()) {
            let (own, answer) = (segment(&mut draw, mix.own), segment(&mut draw, mix.answer));
            let mut segments = prompt.clone();
            segments.push(own);
            if generator == Generator::Chat {
                prompt.extend([own, answer]);
            }
            requests.push(made(when, segments, answer));
            when = match generator {
                Generator::Chat => {
                    when + f64::from(answer.tokens) * SECONDS_A_TOKEN + draw.exponential(THINK)
                }
                _ => at + draw.unit() * BURST,
            };
        }
    }
    // There is at least the first one, unless none was asked for.
    Workload::new(generator.name(), requests).unwrap_or_default()
}

/// Keeps the text of what is shared apart from all other draws.
const GROUPS: u64 = 1 << 32;

fn segment(draw: &mut Rng, (low, high): (usize, usize)) -> Segment {
    let tokens = draw.between(low, high);
    Segment {
        seed: draw.next_u64(),
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
    }
}

fn made(at: f64, segments: Vec<Segment>, answer: Segment) -> Request {
    Request {
        at,
        path: "/v1/completions".into(),
        content: Content::Made {
            model: Arc::from(MODEL),
            segments,
        },
        answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn segments(request: &Request) -> &[Segment] {
        match &request.content {
            Content::Made { segments, .. } => segments,
            Content::Body(_) => panic!("made"),
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_workload() {
        for (name, generator) in NAMES {
            assert_eq!(name.parse(), Ok(generator));
            let workload = generate(generator, 100, 5.0, 7);
            assert_eq!(workload.requests.len(), 100);
            assert_eq!(workload, generate(generator, 100, 5.0, 7));
            assert_ne!(workload, generate(generator, 100, 5.0, 8));
            assert!(
                workload.requests.is_sorted_by(|a, b| a.at <= b.at),
                "{name}"
            );
        }
        assert!("chats".parse::<Generator>().is_err());
    }

    #[test]
    fn requests_come_at_the_rate_that_was_asked_for() {
        for (name, generator) in NAMES {
            let workload = generate(generator, 4_000, 10.0, 1);
            // The last chats go on for some minutes.
            let at = workload.requests[3_000].at;
            assert!((270.0..420.0).contains(&at), "{name}: {at}");
        }
    }

    #[test]
    fn what_is_shared_is_what_the_name_says() {
        let first = |generator| {
            let workload = generate(generator, 300, 10.0, 3);
            let all = workload.requests.iter().map(|r| segments(r)[0]);
            all.collect::<HashSet<_>>().len()
        };
        assert_eq!(first(Generator::SharedPrefix), 32);
        assert_eq!(first(Generator::NoSharing), 300);
        assert_eq!(first(Generator::Siblings), 4);

        let chat = generate(Generator::Chat, 300, 10.0, 3);
        let repeats = |request: &&Request| {
            let mine = segments(request);
            // The last two are the answer before and the new question.
            let before = &mine[..mine.len().saturating_sub(2)];
            let same = |other: &Request| segments(other) == before;
            before.len() > 1 && chat.requests.iter().any(same)
        };
        let grown = chat.requests.iter().filter(repeats);
        assert!(grown.count() > 150, "later turns repeat the earlier ones");
    }
}
