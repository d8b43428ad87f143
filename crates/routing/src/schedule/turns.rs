//! Which pair is asked after which.

use super::{MAX_ATTEMPTS, Pair};
use crate::fleet::Pod;
use smallvec::SmallVec;
use std::sync::Arc;

/// The pairs of a plan, in the order to ask them in while pods fail.
///
/// First each decode pod has its turn, with the best prefill pod of its group that has not failed. Then those decode pods
/// that are not to blame themselves are asked again, with the prefill pods that are left: a dead prefill pod must not cost a
/// request that another one could serve. Decode pods with no prefill pod but failed ones come last: the failure may have been
/// of the moment, but who has not failed is the better guess. No pair comes twice, so the turns end.
#[derive(Clone, Debug)]
pub struct Turns<'a> {
    pairs: &'a [Pair],
    /// Whether the decode pod of each pair had its first turn.
    begun: SmallVec<[bool; MAX_ATTEMPTS]>,
    /// Pods to blame, of either role, in these turns or before.
    failed: SmallVec<[Arc<Pod>; MAX_ATTEMPTS]>,
    /// How many of them failed before.
    before: usize,
}

impl<'a> Turns<'a> {
    pub(super) fn new(pairs: &'a [Pair], failed: &[Arc<Pod>]) -> Self {
        Self {
            pairs,
            begun: SmallVec::from_elem(false, pairs.len()),
            failed: failed.iter().cloned().collect(),
            before: failed.len(),
        }
    }

    /// The next decode pod and its prefill pod; `None` when there is no pair left to ask.
    #[expect(
        clippy::should_implement_trait,
        reason = "what comes next depends on what failed"
    )]
    pub fn next(&mut self) -> Option<(&'a Arc<Pod>, &'a Arc<Pod>)> {
        let (pair, prefill) = self
            .unasked()
            .or_else(|| self.again())
            .or_else(|| self.worn())?;
        let all = self.pairs.iter().zip(&mut self.begun);
        for (_, begun) in all.filter(|(other, _)| other.decode.id == pair.decode.id) {
            *begun = true;
        }
        Some((&pair.decode, prefill))
    }

    /// The pod that is to blame for the end of the pair that was asked last.
    pub fn failed(&mut self, pod: Arc<Pod>) {
        self.failed.push(pod);
    }

    /// A decode pod that was not asked yet, and a prefill pod that has not failed.
    fn unasked(&self) -> Option<(&'a Pair, &'a Arc<Pod>)> {
        self.waiting().find_map(|pair| self.sound(pair))
    }

    /// A decode pod that was asked and is not to blame, and a prefill pod that has not failed.
    fn again(&self) -> Option<(&'a Pair, &'a Arc<Pod>)> {
        // A decode pod that was half of a pair before need not have been to blame for its end.
        let since = self.failed.get(self.before..).unwrap_or_default();
        let mut again = self.pairs.iter().filter(|pair| !among(since, &pair.decode));
        again.find_map(|pair| self.sound(pair))
    }

    /// A decode pod that was not asked yet; all its prefill pods have failed.
    fn worn(&self) -> Option<(&'a Pair, &'a Arc<Pod>)> {
        self.waiting()
            .find_map(|pair| Some((pair, pair.prefill.first()?)))
    }

    fn waiting(&self) -> impl Iterator<Item = &'a Pair> {
        let all = self.pairs.iter().zip(&self.begun);
        all.filter_map(|(pair, begun)| (!begun).then_some(pair))
    }

    fn sound(&self, pair: &'a Pair) -> Option<(&'a Pair, &'a Arc<Pod>)> {
        let prefill = pair.prefill.iter().find(|pod| !among(&self.failed, pod))?;
        Some((pair, prefill))
    }
}

fn among(pods: &[Arc<Pod>], pod: &Arc<Pod>) -> bool {
    pods.iter().any(|other| other.id == pod.id)
}
