//! Continuous batching in discrete steps.
//!
//! Each step gives every running sequence the tokens it still has to compute, then admits waiting ones in order of
//! arrival, all within one budget of tokens; long prompts are spread over several steps (chunked prefill). A sequence that
//! needs a block when none is free takes those of the sequence admitted last, which starts again from the cache later
//! (pre-emption by recomputation). This is the order in which vLLM's scheduler decides.

use std::collections::VecDeque;

use thiserror::Error;

use super::{
    params::{EngineParams, InvalidParams},
    pool::{BlockPool, hash_blocks},
    sequence::{FinishReason, RequestId, Sequence, Submission},
};

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Rejected {
    /// Prompt or answer has no token.
    #[error("a request needs at least one prompt token and one token to generate")]
    Empty,
    /// Prompt and answer together exceed `max_model_len`.
    #[error("{tokens} tokens exceed the model's {limit}")]
    TooLong {
        /// Tokens of prompt and answer.
        tokens: usize,
        /// `max_model_len`.
        limit: usize,
    },
    /// As many requests wait as may.
    #[error("the waiting queue is full")]
    QueueFull,
}

/// One token that a step generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// The request.
    pub id: RequestId,
    /// Position in the answer, from 0.
    pub index: usize,
    /// Seconds since the token before, or since arrival for the first one.
    pub after: f64,
    /// Prompt tokens that were found in the cache.
    pub cached: usize,
    /// Set with the last token: how the answer ended, and where its time went.
    pub finished: Option<(FinishReason, Timing)>,
}

/// Where a finished request's time went, seconds, and what it computed, tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Arrival to end.
    pub total: f64,
    /// Arrival to first admission.
    pub queue: f64,
    /// Admission to first token.
    pub prefill: f64,
    /// First to last token.
    pub decode: f64,
    /// Prompt tokens.
    pub prompt_tokens: usize,
    /// Generated tokens.
    pub generated_tokens: usize,
    /// Prompt tokens found in the cache.
    pub cached_tokens: usize,
    /// Times it lost its blocks.
    pub preemptions: u32,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Prompt tokens of admitted requests.
    pub prefix_queries: u64,
    /// Of these, found in the cache.
    pub prefix_hits: u64,
    /// Prompt tokens of requests that reached their first token.
    pub prompt_tokens: u64,
    /// Of these, found in the cache.
    pub prompt_tokens_cached: u64,
    /// Tokens generated.
    pub generation_tokens: u64,
    /// Requests ended by a stop.
    pub stopped: u64,
    /// Requests ended by their limit of tokens.
    pub limited: u64,
    /// Requests refused because the queue was full.
    pub rejected: u64,
    /// Sequences that lost their blocks to another.
    pub preemptions: u64,
    /// Steps computed.
    pub steps: u64,
}

/// The present.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Sequences in the batch.
    pub running: usize,
    /// Requests not yet admitted, or pre-empted.
    pub waiting: usize,
    /// Share of KV blocks that sequences reference, 0..=1. Cached blocks without a reference count as free.
    pub kv_usage: f64,
    /// Tokens computed by the last step that ended.
    pub last_step_tokens: usize,
}

/// One simulated engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(super) params: EngineParams,
    pub(super) pool: BlockPool,
    pub(super) waiting: VecDeque<Sequence>,
    /// In order of admission.
    pub(super) running: Vec<Sequence>,
    counters: Counters,
    last_step_tokens: usize,
}

impl Engine {
    /// An idle engine with an empty cache.
    ///
    /// # Errors
    /// When no engine can work with these parameters.
    pub fn new(params: EngineParams) -> Result<Self, InvalidParams> {
        params.validate()?;
        // One block is the placeholder that vLLM keeps for padding: it is never handed out.
        let pool = BlockPool::new(params.num_blocks - 1);
        Ok(Self {
            params,
            pool,
            waiting: VecDeque::new(),
            running: Vec::new(),
            counters: Counters::default(),
            last_step_tokens: 0,
        })
    }

    /// The parameters it was made with.
    #[must_use]
    pub fn params(&self) -> &EngineParams {
        &self.params
    }

    /// The sums so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The KV pool, to look at.
    #[must_use]
    pub fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// The present load.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            running: self.running.len(),
            waiting: self.waiting.len(),
            kv_usage: self.pool.used() as f64 / self.pool.len() as f64,
            last_step_tokens: self.last_step_tokens,
        }
    }

    /// Queues a request at time `now`.
    ///
    /// # Errors
    /// When the request can never be served, or the queue is full.
    pub fn submit(&mut self, submission: Submission, now: f64) -> Result<(), Rejected> {
        if submission.prompt.is_empty() || submission.answer.is_empty() {
            return Err(Rejected::Empty);
        }
        let tokens = submission.prompt.len() + submission.answer.len();
        if tokens > self.params.max_model_len {
            return Err(Rejected::TooLong {
                tokens,
                limit: self.params.max_model_len,
            });
        }
        if self
            .params
            .max_num_queued_reqs
            .is_some_and(|limit| self.waiting.len() >= limit)
        {
            self.counters.rejected += 1;
            return Err(Rejected::QueueFull);
        }
        let mut sequence = Sequence::new(submission, now);
        hash_blocks(
            &sequence.tokens,
            self.params.block_size,
            sequence.salt,
            &mut sequence.hashes,
        );
        self.waiting.push_back(sequence);
        Ok(())
    }

    /// Drops a request wherever it is, also in the middle of a step; its blocks stay cached. `false` when unknown.
    pub fn abort(&mut self, id: RequestId) -> bool {
        if let Some(at) = self.running.iter().position(|s| s.id == id) {
            let sequence = self.running.remove(at);
            self.pool.release(&sequence.blocks);
            return true;
        }
        let found = self.waiting.iter().position(|s| s.id == id);
        found.and_then(|at| self.waiting.remove(at)).is_some()
    }

    /// Empties the prefix cache; `false`, and nothing cleared, while a sequence is running.
    pub fn reset_prefix_cache(&mut self) -> bool {
        self.pool.reset()
    }

    /// Starts a step at time `now` and tells how many seconds it takes; `None` when there is nothing to do.
    ///
    /// Call [`Engine::end_step`] before the next one. Requests may be submitted and aborted in between.
    pub fn start_step(&mut self, now: f64) -> Option<f64> {
        let mut budget = self.params.max_num_batched_tokens;
        let preempted = self.schedule_running(&mut budget);
        // What was just freed by force is not given to new requests in the same step.
        if !preempted {
            self.admit(&mut budget, now);
        }
        let tokens = self.params.max_num_batched_tokens - budget;
        if tokens == 0 {
            return None;
        }
        let (mut pairs, mut context) = (0.0, 0);
        for s in self.running.iter().filter(|s| s.scheduled > 0) {
            context += s.computed;
            if s.scheduled > 1 {
                let new = s.scheduled as f64;
                pairs += new * s.computed as f64 + new * (new + 1.0) / 2.0;
            }
        }
        self.last_step_tokens = tokens;
        Some(self.params.step_seconds(tokens, pairs, context))
    }

    /// Ends the step at time `now`; appends what it brought to `events`, in order of admission.
    pub fn end_step(&mut self, now: f64, events: &mut Vec<Event>) {
        self.counters.steps += 1;
        let (pool, counters) = (&mut self.pool, &mut self.counters);
        self.running.retain_mut(|s| {
            if s.scheduled == 0 {
                return true;
            }
            s.computed += std::mem::take(&mut s.scheduled);
            if s.missing() > 0 {
                return true;
            }
            let index = s.generated();
            s.tokens.push(s.answer[index]);
            let cached = s.cached.unwrap_or(0);
            counters.generation_tokens += 1;
            if index == 0 {
                s.first_token = now;
                s.last_token = s.arrived;
                counters.prompt_tokens += s.prompt_len as u64;
                counters.prompt_tokens_cached += cached as u64;
            }
            let after = now - std::mem::replace(&mut s.last_token, now);
            let complete = index + 1 == s.answer.len();
            let finished = complete.then(|| (s.finish, timing(s, now)));
            events.push(Event {
                id: s.id,
                index,
                after,
                cached,
                finished,
            });
            if complete {
                match s.finish {
                    FinishReason::Length => counters.limited += 1,
                    FinishReason::Stop => counters.stopped += 1,
                    FinishReason::Abort => {}
                }
                pool.release(&s.blocks);
            }
            !complete
        });
    }

    /// Gives running sequences their tokens; tells whether any lost its blocks.
    fn schedule_running(&mut self, budget: &mut usize) -> bool {
        let mut preempted = false;
        let mut at = 0;
        while at < self.running.len() && *budget > 0 {
            let wanted = self.running[at].missing().min(*budget);
            let target = self.running[at].computed + wanted;
            while !self.grow(at, target) {
                preempted = true;
                // The youngest gives way; when that is this one itself, it has left the batch.
                self.preempt_youngest(budget);
                if at == self.running.len() {
                    return true;
                }
            }
            self.running[at].scheduled = wanted;
            *budget -= wanted;
            at += 1;
        }
        preempted
    }

    fn preempt_youngest(&mut self, budget: &mut usize) {
        if let Some(mut victim) = self.running.pop() {
            self.pool.release(&victim.blocks);
            victim.blocks.clear();
            *budget += std::mem::take(&mut victim.scheduled);
            victim.computed = 0;
            victim.preemptions += 1;
            self.counters.preemptions += 1;
            self.waiting.push_front(victim);
        }
    }

    /// Makes the blocks of a running sequence hold `target` tokens; `false` (and nothing taken) when too few are free.
    fn grow(&mut self, at: usize, target: usize) -> bool {
        let (pool, sequence) = (&mut self.pool, &mut self.running[at]);
        let needed = self
            .params
            .blocks_for(target)
            .saturating_sub(sequence.blocks.len());
        if needed > pool.free() {
            return false;
        }
        sequence
            .blocks
            .extend((0..needed).map_while(|_| pool.allocate()));
        // A block can be shared from the moment its last token is scheduled: whoever finds it is computed after it.
        let known = sequence.computed / self.params.block_size;
        let full = target / self.params.block_size;
        hash_blocks(
            &sequence.tokens,
            self.params.block_size,
            sequence.salt,
            &mut sequence.hashes,
        );
        for block in known..full {
            pool.fill(sequence.blocks[block], sequence.hashes[block]);
        }
        true
    }

    fn admit(&mut self, budget: &mut usize, now: f64) {
        while *budget > 0 && self.running.len() < self.params.max_num_seqs {
            let Some(mut next) = self.waiting.pop_front() else {
                return;
            };
            hash_blocks(
                &next.tokens,
                self.params.block_size,
                next.salt,
                &mut next.hashes,
            );
            // At least one token must be computed to generate the next, so the last one is never taken from the cache.
            let usable = (next.tokens.len() - 1) / self.params.block_size;
            let hits: Vec<_> = self.pool.lookup(&next.hashes[..usable]).collect();
            let cached = hits.len() * self.params.block_size;
            // Once only: what is lost to pre-emption is computed here.
            let held = match std::mem::take(&mut next.transferred) {
                true => cached.max(next.tokens.len() - 1),
                false => cached,
            };
            let wanted = (next.tokens.len() - held).min(*budget);
            let fresh = self.params.blocks_for(held + wanted) - hits.len();
            let revived = hits.iter().filter(|&&id| self.pool.is_free(id)).count();
            if fresh + revived > self.pool.free() {
                next.transferred = held > cached;
                self.waiting.push_front(next);
                return;
            }
            for &id in &hits {
                self.pool.take(id);
            }
            next.blocks = hits;
            next.computed = cached;
            next.scheduled = wanted;
            *budget -= wanted;
            if next.cached.is_none() {
                next.cached = Some(held);
                next.admitted = now;
                self.counters.prefix_queries += next.prompt_len as u64;
                self.counters.prefix_hits += cached as u64;
            }
            self.running.push(next);
            let youngest = self.running.len() - 1;
            let grown = self.grow(youngest, held + wanted);
            debug_assert!(grown, "the free blocks were counted above");
            self.running[youngest].computed = held;
        }
    }
}

fn timing(s: &Sequence, now: f64) -> Timing {
    Timing {
        total: now - s.arrived,
        queue: s.admitted - s.arrived,
        prefill: s.first_token - s.admitted,
        decode: now - s.first_token,
        prompt_tokens: s.prompt_len,
        generated_tokens: s.generated(),
        cached_tokens: s.cached.unwrap_or(0),
        preemptions: s.preemptions,
    }
}
