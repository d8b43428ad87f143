//! Plans for servers that answer a request with two pods.

use super::{Ask, MAX_ATTEMPTS, Memo, Observer, Plan, ScheduleError, Scheduler, Turns};
use crate::fleet::{Disaggregated, Pod};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A decode pod, and who may do the prefill for it.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Generates the answer.
    pub decode: Arc<Pod>,
    /// The prefill pods of its group, best first; never empty. The first one is the pair's; the others stand in for it
    /// when it has failed.
    pub prefill: SmallVec<[Arc<Pod>; MAX_ATTEMPTS]>,
}

/// The pairs to try, and what to record for both pods of the one that has served the request.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// Best first; never empty.
    pub pairs: SmallVec<[Pair; MAX_ATTEMPTS]>,
    /// What both passes hashed; to be given to [`Scheduler::served`] for each of both pods. `None` when there is nothing
    /// to record.
    pub memo: Option<Memo>,
}

impl PairPlan {
    /// Lets pairs with these pods be asked after the others, and other prefill pods stand in for these. Their order among
    /// themselves stays.
    pub fn put_behind(&mut self, is_behind: impl Fn(&Pod) -> bool) {
        for pair in &mut self.pairs {
            pair.prefill.sort_by_key(|pod| is_behind(pod));
        }
        self.pairs.sort_by_key(|pair| {
            is_behind(&pair.decode) || pair.prefill.first().is_some_and(|pod| is_behind(pod))
        });
    }

    /// The pairs one after the other, where the pods of `failed` have failed before.
    #[must_use]
    pub fn turns(&self, failed: &[Arc<Pod>]) -> Turns<'_> {
        Turns::new(&self.pairs, failed)
    }
}

impl Scheduler {
    /// Chooses decode pods, over all groups, and for each of them prefill pods of its group. Records nothing.
    ///
    /// Decode pods and prefill pods are filtered and scored in passes of their own: decode first, then each group that one
    /// of the best decode pods is in, once.
    ///
    /// # Errors
    /// If there is no decode pod, if a Filter plugin drops the last of them, or if no prefill pod is left for any.
    pub fn plan_pairs(
        &self,
        ask: &Ask<'_>,
        pods: &Disaggregated,
        observer: &mut dyn Observer,
    ) -> Result<PairPlan, ScheduleError> {
        if pods.decode_pods().is_empty() {
            return Err(ScheduleError::NoDecodePods);
        }
        if pods.paired_pods().is_empty() {
            return Err(ScheduleError::NoPairs);
        }
        let Plan { attempts, memo } = self.plan_among(ask, pods.paired_pods(), observer)?;
        // A group's candidates, or that none of them passed.
        let mut passes: SmallVec<[(usize, Option<Plan>); MAX_ATTEMPTS]> = SmallVec::new();
        let mut pairs = SmallVec::new();
        for decode in attempts {
            let Some(group) = pods.group_of(decode.id) else {
                continue;
            };
            let at = match passes.iter().position(|(known, _)| *known == group) {
                Some(at) => at,
                None => {
                    let candidates = pods.groups().get(group).map_or(&[][..], Vec::as_slice);
                    let plan = match self.plan_among(ask, candidates, observer) {
                        Ok(plan) => Some(plan),
                        Err(error @ ScheduleError::Unscored { .. }) => return Err(error),
                        Err(_) => None,
                    };
                    passes.push((group, plan));
                    passes.len() - 1
                }
            };
            if let Some((_, Some(plan))) = passes.get(at) {
                let prefill = plan.attempts.clone();
                pairs.push(Pair { decode, prefill });
            }
        }
        if pairs.is_empty() {
            return Err(ScheduleError::NoPairs);
        }
        Ok(PairPlan { pairs, memo })
    }

    /// Chooses among the pairs but one that has failed: first those of other decode pods. Records nothing.
    ///
    /// # Errors
    /// As [`Self::plan_pairs`], and if no other pair is left.
    pub fn plan_pairs_without(
        &self,
        ask: &Ask<'_>,
        pods: &Disaggregated,
        failed: &Pair,
        observer: &mut dyn Observer,
    ) -> Result<PairPlan, ScheduleError> {
        let mut plan = self.plan_pairs(ask, pods, observer)?;
        let prefill = failed.prefill.first().map(|pod| pod.id);
        let is_left = |pair: &Pair| {
            pair.decode.id != failed.decode.id || pair.prefill.iter().any(|p| Some(p.id) != prefill)
        };
        plan.pairs.retain(|pair| is_left(pair));
        plan.pairs
            .sort_by_key(|pair| pair.decode.id == failed.decode.id);
        match plan.pairs.is_empty() {
            true => Err(ScheduleError::NoPairs),
            false => Ok(plan),
        }
    }

    /// The plan for a request that is bound to a pair: that pair alone, nothing scored, and nothing to record unless a
    /// plugin was told to. `None` when they are no longer of one group, or the Filter plugins drop one of them.
    #[must_use]
    pub fn pinned_pair(
        &self,
        ask: &Ask<'_>,
        pods: &Disaggregated,
        prefill: &Arc<Pod>,
        decode: &Arc<Pod>,
        observer: &mut dyn Observer,
    ) -> Option<PairPlan> {
        let group = pods.groups().get(pods.group_of(decode.id)?)?;
        group.iter().find(|pod| pod.id == prefill.id)?;
        if !self.passes(ask, decode, observer) || !self.passes(ask, prefill, observer) {
            return None;
        }
        let pair = Pair {
            decode: Arc::clone(decode),
            prefill: smallvec![Arc::clone(prefill)],
        };
        let mut pairs = SmallVec::new();
        pairs.push(pair);
        Some(PairPlan {
            pairs,
            memo: self.pinned_memo(ask),
        })
    }
}
