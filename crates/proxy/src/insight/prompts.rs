//! The last prompts of each model, and what they have in common.
//!
//! Of a prompt its first bytes are kept as they are, and the hashes of its blocks. So the place where two prompts part is
//! known to the byte near the start, where a date or an id does the most harm, and to the block further on.

use crate::metrics::Text;
use memchr::memmem;
use parking_lot::Mutex;
use prefix_index::{Chain, Hashes};
use routing::prompt::Prompt;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Models whose prompts are kept.
const MODELS: usize = 32;
/// Prompts that are kept of a model.
const SAMPLES: usize = 32;
/// Bytes of a prompt that are kept as they are.
pub(crate) const HEAD_BYTES: usize = 1024;
/// Bytes of a block.
const BLOCK_BYTES: usize = 64;
/// Blocks of a prompt that are hashed at most: 256 KiB of it. A sample takes 33 KiB at most, all of them 33 MiB.
const MAX_BLOCKS: usize = 4096;

/// Bytes that must be equal for two prompts to be the same again after they parted: more than the marks of a chat template.
const AGAIN_BYTES: usize = 64;
/// Bytes after the place where two prompts part in which they may become the same again.
const APART_BYTES: usize = 256;

/// The last sampled prompts.
#[derive(Debug, Default)]
pub(crate) struct Prompts(Mutex<VecDeque<Model>>);

#[derive(Debug)]
struct Model {
    name: Text,
    samples: VecDeque<Arc<Sample>>,
}

/// What is kept of one prompt.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Its first bytes.
    pub(crate) head: Vec<u8>,
    bytes: usize,
    blocks: Hashes,
}

impl Sample {
    fn of(prompt: &Prompt<'_>) -> Self {
        let mut head = Vec::new();
        let mut bytes = 0;
        let mut chain = Chain::new("", BLOCK_BYTES, MAX_BLOCKS);
        prompt.walk(|piece| {
            let room = HEAD_BYTES - head.len();
            head.extend_from_slice(piece.get(..room).unwrap_or(piece));
            bytes += piece.len();
            // Breaks when there are enough blocks; the length is wanted whatever it is.
            let _ = chain.push(piece);
            ControlFlow::Continue(())
        });
        Self {
            head,
            bytes,
            blocks: chain.finish(),
        }
    }

    /// Bytes that two prompts have in common from their start, at least; exact below [`HEAD_BYTES`].
    fn common(&self, other: &Self) -> usize {
        let pairs = self.head.iter().zip(&other.head);
        let same = pairs.take_while(|(a, b)| a == b).count();
        if same < self.head.len().min(other.head.len()) {
            return same;
        }
        // A hash stands for all before it as well.
        let pairs = self.blocks.iter().zip(&*other.blocks);
        let blocks = pairs.take_while(|(a, b)| a == b).count();
        let shorter = self.bytes.min(other.bytes);
        (blocks * BLOCK_BYTES).max(same).min(shorter)
    }
}

impl Sample {
    /// Bytes after which this prompt is again what the other one is, which it is no more from byte `from` on: the length of
    /// a date or of an id in the midst of what is shared. Seen within the first bytes only.
    fn resumes(&self, other: &Self, from: usize) -> Option<usize> {
        let (mine, theirs) = (self.after(from)?, other.after(from)?);
        let mut windows = mine.windows(AGAIN_BYTES);
        windows.position(|window| memmem::find(theirs, window).is_some())
    }

    /// What is looked at from a place on.
    fn after(&self, from: usize) -> Option<&[u8]> {
        let rest = self.head.get(from..)?;
        Some(rest.get(..APART_BYTES + AGAIN_BYTES).unwrap_or(rest))
    }
}

/// Prompts that part from the one they share most with, and are the same again soon after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resumes {
    /// How many there are.
    pub(crate) samples: usize,
    /// Where they part, and how many bytes later they are the same again: the middle ones, in bytes.
    pub(crate) from: usize,
    pub(crate) after: usize,
}

/// Least, middle and greatest of some figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) min: usize,
    pub(crate) median: usize,
    pub(crate) max: usize,
}

impl Spread {
    fn of(mut figures: Vec<usize>) -> Self {
        figures.sort_unstable();
        let middle = figures.len() / 2;
        Self {
            min: figures.first().copied().unwrap_or_default(),
            median: figures.get(middle).copied().unwrap_or_default(),
            max: figures.last().copied().unwrap_or_default(),
        }
    }

    pub(crate) fn json(self) -> Value {
        json!({"min": self.min, "median": self.median, "max": self.max})
    }
}

/// What the prompts of one model share, in bytes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) model: Text,
    pub(crate) samples: usize,
    /// Their lengths.
    pub(crate) prompt: Spread,
    /// What each two of them have in common.
    pub(crate) pair: Spread,
    /// What each has in common with the one it has most in common with.
    pub(crate) best: Spread,
    /// Whether they are the same again after that.
    pub(crate) resumes: Option<Resumes>,
}

impl Prompts {
    /// Keeps a prompt, in place of the oldest of its model; a model that is new takes the place of the one that had no
    /// request for the longest time.
    pub(crate) fn keep(&self, model: &Text, prompt: &Prompt<'_>) {
        let sample = Arc::new(Sample::of(prompt));
        let mut models = self.0.lock();
        let known = models.iter().position(|m| m.name == *model);
        let mut entry = known.and_then(|at| models.remove(at)).unwrap_or_else(|| {
            models.truncate(MODELS - 1);
            let samples = VecDeque::with_capacity(SAMPLES);
            let name = model.clone();
            Model { name, samples }
        });
        entry.samples.truncate(SAMPLES - 1);
        entry.samples.push_front(sample);
        models.push_front(entry);
    }

    /// The prompts of each model, the latest first.
    pub(crate) fn samples(&self) -> Vec<(Text, Vec<Arc<Sample>>)> {
        let models = self.0.lock();
        let entry = |m: &Model| (m.name.clone(), m.samples.iter().cloned().collect());
        models.iter().map(entry).collect()
    }

    /// What the prompts of each model have in common.
    pub(crate) fn shared(&self) -> Vec<Shared> {
        let models = self.samples().into_iter();
        models
            .map(|(model, samples)| compare(model, &samples))
            .collect()
    }
}

fn compare(model: Text, samples: &[Arc<Sample>]) -> Shared {
    let mut pairs = Vec::new();
    // What each shares with the one it shares most with, and which one that is.
    let mut best = vec![(0, 0); samples.len()];
    for (i, one) in samples.iter().enumerate() {
        for (j, other) in samples.iter().enumerate().skip(i + 1) {
            let common = one.common(other);
            pairs.push(common);
            best[i] = best[i].max((common, j));
            best[j] = best[j].max((common, i));
        }
    }
    let resumes = resuming(samples, &best);
    let best = best.into_iter().map(|(common, _)| common).collect();
    Shared {
        resumes,
        model,
        samples: samples.len(),
        prompt: Spread::of(samples.iter().map(|s| s.bytes).collect()),
        pair: Spread::of(pairs),
        best: Spread::of(if samples.len() > 1 { best } else { Vec::new() }),
    }
}

fn resuming(samples: &[Arc<Sample>], best: &[(usize, usize)]) -> Option<Resumes> {
    let mut found = Vec::new();
    for (one, &(from, other)) in samples.iter().zip(best) {
        let after = samples.get(other).and_then(|o| one.resumes(o, from));
        found.extend(after.map(|after| (from, after)));
    }
    let (from, after): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    (!from.is_empty()).then(|| Resumes {
        samples: from.len(),
        from: Spread::of(from).median,
        after: Spread::of(after).median,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(text: &str) -> Sample {
        Sample::of(&Prompt::from_text(text))
    }

    #[test]
    fn exact_near_the_start_and_whole_blocks_further_on() {
        let text = "abcdefgh".repeat(500);
        let other = |at: usize| sample(&format!("{}{}", &text[..at], "-".repeat(3000)));
        let whole = sample(&text);
        for at in [0, 1, 63, 64, 700, 1023] {
            assert_eq!(whole.common(&other(at)), at);
        }
        assert_eq!(whole.common(&other(1024)), 1024);
        assert_eq!(whole.common(&other(1100)), 1088, "17 blocks");
        assert_eq!(whole.common(&whole), 4000);
        assert_eq!(whole.common(&sample(&text[..100])), 100, "all of it");
        assert_eq!(whole.common(&sample("")), 0);
        assert_eq!(whole.head.len(), HEAD_BYTES);
    }

    #[test]
    fn each_two_and_each_with_its_best() {
        let prompts = Prompts::default();
        let model = Text::from("m");
        for text in ["one two", "one three", "two", "one twins"] {
            prompts.keep(&model, &Prompt::from_text(text));
        }
        let shared = prompts.shared();
        let [all] = &shared[..] else {
            panic!("one model")
        };
        let spread = |min, median, max| Spread { min, median, max };
        assert_eq!((all.samples, all.prompt), (4, spread(3, 9, 9)));
        // 5, 0, 6; 0, 5; 0
        assert_eq!(all.pair, spread(0, 5, 6));
        assert_eq!(all.best, spread(0, 6, 6));
    }

    #[test]
    fn a_date_in_the_midst_of_what_is_shared() {
        let resumes = |prompts: &[String]| {
            let all: Vec<_> = prompts.iter().map(|p| Arc::new(sample(p))).collect();
            compare(Text::from("m"), &all).resumes
        };
        let before = "You are a helpful assistant. ".repeat(3);
        let after: String = (0..200).map(|n| format!("Rule {n}. ")).collect();
        let dated = |n: u32| format!("{before}{:06}{after}{}", n * 7919 % 1_000_000, n * n);
        let some = resumes(&(1..20).map(dated).collect::<Vec<_>>()).unwrap();
        assert_eq!(some.samples, 19);
        assert!((87..93).contains(&some.from), "{some:?}");
        assert!((1..=6).contains(&some.after), "{some:?}");
        // What differs may be of another length in each.
        let named = |n: usize| format!("{before}{}{after}", "xyz".repeat(n));
        assert!(resumes(&(1..4).map(named).collect::<Vec<_>>()).is_some());
        // A chat template alone is no reason, nor are prompts that end, or are equal.
        let asked = |n: u32| format!("{}<|im_end|>\n<|im_start|>assistant\n{}", n, n * 7919);
        assert_eq!(resumes(&(1..20).map(asked).collect::<Vec<_>>()), None);
        assert_eq!(resumes(&[before.clone(), before.clone(), after]), None);
        let tail = |n: u32| format!("{before}{n}");
        assert_eq!(resumes(&(1..20).map(tail).collect::<Vec<_>>()), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let prompts = Prompts::default();
        for model in 0..40 {
            for n in 0..40 {
                let text = format!("{model} {n}");
                prompts.keep(
                    &Text::from(&*format!("m{model}")),
                    &Prompt::from_text(&text),
                );
            }
        }
        let kept = prompts.samples();
        assert_eq!((kept.len(), kept[0].0.as_str()), (MODELS, "m39"));
        assert!(kept.iter().all(|(_, samples)| samples.len() == SAMPLES));
        assert_eq!(kept[0].1[0].head, b"39 39");
        let long = "x".repeat(1 << 20);
        assert_eq!(sample(&long).blocks.len(), MAX_BLOCKS);
        assert_eq!(sample(&long).bytes, 1 << 20);
    }
}
