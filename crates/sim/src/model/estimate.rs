//! What an engine that is asked now would need until a prompt's first token: the knowledge that no router has.

use super::{Engine, pool::hash_blocks, sequence::Sequence};

/// An engine's present in relation to one prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Tokens of the prompt that its cache holds and would be used.
    pub cached: usize,
    /// Seconds to the first token, if nothing else comes.
    pub seconds: f64,
}

impl Engine {
    /// The hashes of a prompt's blocks, for [`Self::estimate`]. `salt` is that of its [`Submission`](super::Submission).
    #[must_use]
    pub fn hashes(&self, prompt: &[u32], salt: u64) -> Vec<u64> {
        let mut hashes = Vec::with_capacity(prompt.len() / self.params.block_size);
        hash_blocks(prompt, self.params.block_size, salt, &mut hashes);
        hashes
    }

    /// What a prompt of `tokens` tokens with these block hashes would meet.
    ///
    /// Counted: what runs and waits before it and is not computed yet, its own tokens that are not cached, attention, and
    /// the steps that this takes with the batch of now. If too few blocks are free, the shortest answer under way is
    /// waited for. Not counted: that answers end and begin meanwhile, and that prompts which wait will find each other's blocks.
    #[must_use]
    pub fn estimate(&self, hashes: &[u64], tokens: usize) -> Estimate {
        let params = &self.params;
        let cached = self.cached(hashes, tokens);
        let mut work = Work::default();
        let mut context = cached;
        for running in &self.running {
            context += running.computed;
            if running.missing() > 1 {
                work.add(running.missing(), running.computed);
            }
        }
        for waiting in &self.waiting {
            let cached = self.cached(&waiting.hashes, waiting.tokens.len());
            work.add(waiting.missing() - cached, cached);
        }
        work.add(tokens - cached, cached);
        let steps = work.tokens.div_ceil(params.max_num_batched_tokens) as f64;
        let fixed = params.step_overhead + context as f64 * params.kv_read_per_token;
        let compute = work.tokens as f64 * params.compute_per_token;
        let mut seconds = steps * fixed
            + compute.max(steps * params.weight_read)
            + work.pairs * params.attention_per_pair;
        let fresh = params.blocks_for(tokens) - cached / params.block_size;
        if fresh > self.pool.free() || self.running.len() >= params.max_num_seqs {
            let left = |s: &Sequence| s.answer.len() - s.generated();
            let shortest = self.running.iter().map(left).min().unwrap_or(0);
            seconds += shortest as f64 * (fixed + params.weight_read);
        }
        Estimate { cached, seconds }
    }

    /// Tokens of a prompt that the cache holds and would be used: whole blocks, and never the last token.
    fn cached(&self, hashes: &[u64], tokens: usize) -> usize {
        let usable = (tokens.saturating_sub(1) / self.params.block_size).min(hashes.len());
        self.pool.lookup(&hashes[..usable]).count() * self.params.block_size
    }
}

/// Tokens to compute, and the pairs that they attend to.
#[derive(Default)]
struct Work {
    tokens: usize,
    pairs: f64,
}

impl Work {
    fn add(&mut self, new: usize, before: usize) {
        let tokens = new as f64;
        self.tokens += new;
        self.pairs += tokens * before as f64 + tokens * (tokens + 1.0) / 2.0;
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Engine, EngineParams, FinishReason, RequestId, Submission};

    fn submission(id: u64, prompt: Vec<u32>) -> Submission {
        Submission {
            id: RequestId(id),
            prompt,
            answer: vec![1],
            finish: FinishReason::Length,
            salt: 0,
            transferred: false,
        }
    }

    /// Runs until there is nothing to do; returns when each request had its first token.
    fn run(engine: &mut Engine, mut now: f64) -> Vec<f64> {
        let mut first = Vec::new();
        let mut events = Vec::new();
        while let Some(seconds) = engine.start_step(now) {
            now += seconds;
            engine.end_step(now, &mut events);
            first.extend(events.drain(..).filter(|e| e.index == 0).map(|_| now));
        }
        first
    }

    #[test]
    fn an_idle_engine_answers_when_it_was_estimated_to() {
        let mut engine = Engine::new(EngineParams::datacentre_7b()).unwrap();
        let prompt: Vec<u32> = (0..6_000).collect();
        let cold = engine.estimate(&engine.hashes(&prompt, 0), prompt.len());
        assert_eq!(cold.cached, 0);
        engine.submit(submission(1, prompt.clone()), 0.0).unwrap();
        let first = run(&mut engine, 0.0);
        assert!((first[0] - cold.seconds).abs() < 1e-6, "{first:?} {cold:?}");

        let warm = engine.estimate(&engine.hashes(&prompt, 0), prompt.len());
        assert_eq!(warm.cached, 5_984, "whole blocks, and never the last token");
        engine.submit(submission(2, prompt), 10.0).unwrap();
        let first = run(&mut engine, 10.0);
        assert!(
            (first[0] - 10.0 - warm.seconds).abs() < 1e-6,
            "{first:?} {warm:?}"
        );
    }

    #[test]
    fn what_waits_counts() {
        let mut engine = Engine::new(EngineParams::datacentre_7b()).unwrap();
        for id in 0..3 {
            let prompt = (0..4_000).map(|token| token + 10_000 * id).collect();
            engine
                .submit(submission(u64::from(id), prompt), 0.0)
                .unwrap();
        }
        let prompt: Vec<u32> = (100_000..104_000).collect();
        let estimate = engine.estimate(&engine.hashes(&prompt, 0), prompt.len());
        engine.submit(submission(9, prompt), 0.0).unwrap();
        let last = *run(&mut engine, 0.0).last().unwrap();
        let error = (last - estimate.seconds).abs() / last;
        assert!(error < 0.1, "{last} {estimate:?}");
    }
}
