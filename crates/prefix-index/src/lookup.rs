//! Which candidates hold the longest part of a prompt.

use crate::PodId;
use crate::tree::{Holder, Tree};
use smallvec::SmallVec;

/// How many times longer a list must be to be searched instead of walked: a search among a hundred costs as much as
/// about ten steps.
const SEARCH_ABOVE: usize = 8;

/// A candidate's place and how it compares with others: the lowest key has the most blocks, and of these the lowest
/// rank. One number, because a comparison by parts is a branch that the CPU guesses wrong, for each of many pods.
type Found = (u128, usize);

fn key(blocks: u32, rank: u64) -> u128 {
    u128::from(!blocks) << 64 | u128::from(rank)
}

fn blocks_of(key: u128) -> u32 {
    !((key >> 64) as u32)
}

/// Sets `out[i]` to the number of leading blocks that `pods[i]` holds, for at most `k` pods, and returns the greatest.
///
/// The rule is: go from the last block to the first, a pod's first hit is its longest match, stop when `k` pods are
/// found. Whoever holds a block of a run holds all runs before it, so going from the last run to the first, what a pod
/// holds of the first run that it is met in is its longest match.
pub(crate) fn longest_matches(
    tree: &Tree,
    hashes: &[u64],
    pods: &[PodId],
    k: usize,
    draw: u64,
    out: &mut [u32],
) -> u32 {
    out.fill(0);
    let path = tree.path(hashes);
    let mut before: u32 = path.iter().map(|step| step.blocks).sum();
    let mut places = k;
    let mut best = 0;
    for step in path.iter().rev() {
        if places == 0 {
            break;
        }
        before -= step.blocks;
        // Best first, and never more than there are places.
        let mut fresh = SmallVec::<[Found; 8]>::new();
        each_candidate(&tree.runs[step.run].holders, pods, |i, held| {
            if out[i] > 0 {
                return;
            }
            let blocks = before + held.min(step.blocks);
            let key = key(blocks, pods[i].rank(draw));
            if fresh.len() == places {
                if fresh.last().is_some_and(|(last, _)| *last < key) {
                    return;
                }
                fresh.pop();
            }
            let at = fresh.partition_point(|(better, _)| *better < key);
            fresh.insert(at, (key, i));
        });
        places -= fresh.len();
        for &(key, i) in &fresh {
            let blocks = blocks_of(key);
            out[i] = blocks;
            best = best.max(blocks);
        }
    }
    best
}

/// Visits the places in `pods` of those that are holders, with what they hold. Both lists are ascending: when they are
/// about as long they are merged, otherwise each element of the shorter one is searched in the longer one.
fn each_candidate(holders: &[Holder], pods: &[PodId], mut visit: impl FnMut(usize, u32)) {
    if holders.len() * SEARCH_ABOVE < pods.len() {
        for holder in holders {
            if let Ok(i) = pods.binary_search(&holder.pod) {
                visit(i, holder.held);
            }
        }
    } else if pods.len() * SEARCH_ABOVE < holders.len() {
        for (i, pod) in pods.iter().enumerate() {
            if let Ok(at) = holders.binary_search_by_key(pod, |h| h.pod) {
                visit(i, holders[at].held);
            }
        }
    } else {
        let mut rest = holders.iter().peekable();
        for (i, pod) in pods.iter().enumerate() {
            while rest.next_if(|holder| holder.pod < *pod).is_some() {}
            if let Some(holder) = rest.next_if(|holder| holder.pod == *pod) {
                visit(i, holder.held);
            }
        }
    }
}
