//! Which candidates hold the longest part of a prompt.

use crate::PodId;
use crate::postings::{Holder, Postings};
use smallvec::SmallVec;
use std::iter::StepBy;
use std::ops::ControlFlow::{self, Break, Continue};
use std::ops::Range;

/// How many times longer a list must be to be searched instead of walked: a search among a hundred costs as much as
/// about ten steps.
const SEARCH_ABOVE: usize = 8;

/// Sets `out[i]` to the number of leading blocks that `pods[i]` holds, for at most `k` pods, and returns the greatest.
///
/// The rule is: go from the last block to the first, a pod's first hit is its longest match, stop when `k` pods are
/// found. Because a pod that holds a block holds all blocks before it, the number of candidates that hold block n never
/// grows with n; so instead of asking for every block this finds, by bisection, the blocks at which the number grows:
/// at most `k` times log2(blocks) probes, and two probes for a prompt that nobody has.
pub(crate) fn longest_matches(
    postings: &Postings,
    hashes: &[u64],
    pods: &[PodId],
    k: usize,
    draw: u64,
    out: &mut [u32],
) -> u32 {
    out.fill(0);
    let mut best = 0;
    let mut found = 0;
    let mut end = hashes.len();
    while found < k {
        let holds = |n: usize| more_candidates_than(found, postings.holders(hashes[n]), pods);
        let touch =
            |places: StepBy<Range<usize>>| postings.touch_holders(places.map(|n| hashes[n]));
        let Some(n) = last_where(end, holds, touch) else {
            break;
        };
        let mut fresh = SmallVec::<[(u64, usize); 16]>::new();
        let _ = each_candidate(postings.holders(hashes[n]), pods, |i| {
            if out[i] == 0 {
                fresh.push((pods[i].rank(draw), i));
            }
            Continue(())
        });
        let places = k - found;
        if fresh.len() > places {
            fresh.select_nth_unstable(places);
            fresh.truncate(places);
        }
        // Block counts are far below 2^32: a prompt of that many blocks does not fit into a request.
        let matched = (n + 1) as u32;
        for &(_, i) in &fresh {
            out[i] = matched;
        }
        found += fresh.len();
        best = best.max(matched);
        end = n;
    }
    best
}

/// The last `n < end` for which a predicate holds that, once false, stays false. Both ends are asked first: most
/// prompts are known to the end or not at all. `touch` is told what may be asked next.
fn last_where(
    end: usize,
    mut holds: impl FnMut(usize) -> bool,
    touch: impl Fn(StepBy<Range<usize>>),
) -> Option<usize> {
    let last = end.checked_sub(1)?;
    if holds(last) {
        return Some(last);
    }
    if last == 0 || !holds(0) {
        return None;
    }
    let (mut yes, mut no) = (0, last);
    while no - yes > 1 {
        // Three halvings ask three of these seven places; to bring all seven takes no longer than to bring one.
        let step = (no - yes).div_ceil(8);
        let (start, mut low, mut high) = (yes, 0, (no - yes).div_ceil(step));
        touch((start + step..no).step_by(step));
        while high - low > 1 {
            let middle = (low + high) / 2;
            let n = start + middle * step;
            if holds(n) {
                (low, yes) = (middle, n);
            } else {
                (high, no) = (middle, n);
            }
        }
    }
    Some(yes)
}

fn more_candidates_than(found: usize, holders: &[Holder], pods: &[PodId]) -> bool {
    if holders.len() <= found {
        return false;
    }
    let mut left = found;
    each_candidate(holders, pods, |_| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            Continue(())
        }
        None => Break(()),
    })
    .is_break()
}

/// Visits the places in `pods` of those that are holders. Both lists are ascending: when they are about as long they
/// are merged, otherwise each element of the shorter one is searched in the longer one.
fn each_candidate(
    holders: &[Holder],
    pods: &[PodId],
    mut visit: impl FnMut(usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if holders.len() * SEARCH_ABOVE < pods.len() {
        for holder in holders {
            if let Ok(i) = pods.binary_search(&holder.pod) {
                visit(i)?;
            }
        }
    } else if pods.len() * SEARCH_ABOVE < holders.len() {
        for (i, pod) in pods.iter().enumerate() {
            if holders.binary_search_by_key(pod, |h| h.pod).is_ok() {
                visit(i)?;
            }
        }
    } else {
        let mut rest = holders.iter().map(|h| h.pod).peekable();
        for (i, pod) in pods.iter().enumerate() {
            while rest.next_if(|holder| holder < pod).is_some() {}
            if rest.next_if_eq(pod).is_some() {
                visit(i)?;
            }
        }
    }
    Continue(())
}
