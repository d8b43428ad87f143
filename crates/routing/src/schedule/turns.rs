//! Which pair is asked after which.

use super::{MAX_ATTEMPTS, Pair};
use crate::fleet::Pod;
use smallvec::SmallVec;
use std::sync::Arc;

/// The pairs of a plan, in the order to ask them in while pods fail.
///
/// First each decode pod has its turn, with the best prefill pod of its group that has not failed. Then those decode pods
/// that are not to blame themselves are asked again, with the prefill pods that are left: a dead prefill pod must not cost a
/// request that another one could serve. No pair comes twice, so the turns end.
#[derive(Clone, Debug)]
pub struct Turns<'a> {
    pairs: &'a [Pair],
    /// Decode pods that had their first turn.
    begun: usize,
    /// Pods to blame, of either role, in these turns or before.
    failed: SmallVec<[Arc<Pod>; MAX_ATTEMPTS]>,
    /// How many of them failed before.
    before: usize,
}

impl<'a> Turns<'a> {
    pub(super) fn new(pairs: &'a [Pair], failed: &[Arc<Pod>]) -> Self {
        Self {
            pairs,
            begun: 0,
            failed: failed.iter().cloned().collect(),
            before: failed.len(),
        }
    }

    /// The next decode pod and its prefill pod; `None` when every pair with two sound pods was asked.
    #[expect(
        clippy::should_implement_trait,
        reason = "what comes next depends on what failed"
    )]
    pub fn next(&mut self) -> Option<(&'a Arc<Pod>, &'a Arc<Pod>)> {
        while let Some(pair) = self.pairs.get(self.begun) {
            self.begun += 1;
            if let Some(prefill) = pair.prefill_without(&self.failed) {
                return Some((&pair.decode, prefill));
            }
        }
        // A decode pod that was half of a pair before need not have been to blame for its end.
        let since = self.failed.get(self.before..).unwrap_or_default();
        let again = self.pairs.iter().filter(|pair| !among(since, &pair.decode));
        again
            .filter_map(|pair| {
                let prefill = pair.prefill.iter().find(|pod| !among(&self.failed, pod))?;
                Some((&pair.decode, prefill))
            })
            .next()
    }

    /// The pod that is to blame for the end of the pair that was asked last.
    pub fn failed(&mut self, pod: Arc<Pod>) {
        self.failed.push(pod);
    }
}

fn among(pods: &[Arc<Pod>], pod: &Arc<Pod>) -> bool {
    pods.iter().any(|other| other.id == pod.id)
}
