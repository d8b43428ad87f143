//! The best rows.

use super::{MAX_ATTEMPTS, Row, Total};
use crate::fleet::Pod;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::sync::Arc;

/// The pods with the greatest totals, best first. Equal pods are ordered by `draw`, each order equally likely.
pub(super) fn best(
    rows: &[Row<'_>],
    totals: &[Total],
    draw: u64,
) -> SmallVec<[Arc<Pod>; MAX_ATTEMPTS]> {
    let key = |i: usize| (Reverse(totals[i]), rows[i].pod.id.rank(draw), i);
    let mut order: SmallVec<[_; 16]> = (0..rows.len()).map(key).collect();
    if order.len() > MAX_ATTEMPTS {
        order.select_nth_unstable(MAX_ATTEMPTS);
        order.truncate(MAX_ATTEMPTS);
    }
    order.sort_unstable();
    order
        .iter()
        .map(|&(.., i)| Arc::clone(rows[i].pod))
        .collect()
}
