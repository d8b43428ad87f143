//! What is still to happen, in order of time.

use crate::replay::fleet::What;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// What is due at one time happens in the order in which it was planned, so that a replay can be repeated.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    due: BinaryHeap<Reverse<Due>>,
    /// Everything ever planned.
    planned: u64,
    /// What is planned and is no scrape.
    awaited: usize,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: f64, what: Next) {
        self.planned += 1;
        self.awaited += usize::from(!matches!(what, Next::Scrape));
        self.due.push(Reverse(Due {
            at,
            order: self.planned,
            what,
        }));
    }

    /// What happens next, and when.
    pub(super) fn next(&mut self) -> Option<(f64, Next)> {
        let Reverse(due) = self.due.pop()?;
        self.awaited -= usize::from(!matches!(due.what, Next::Scrape));
        Some((due.at, due.what))
    }

    /// Whether nothing is planned that could move a request.
    pub(super) fn is_idle(&self) -> bool {
        self.awaited == 0
    }
}

/// Something on the agenda.
#[derive(Debug)]
struct Due {
    at: f64,
    order: u64,
    what: Next,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// The request of this number arrives.
    Arrival(usize),
    /// The step of an engine ends, if it is still the same engine.
    StepEnd { engine: usize, life: u32 },
    /// All engines' metrics are read.
    Scrape,
    /// Something is done to a pod.
    Happening(What),
    /// An engine that crashed into this life is there again.
    Back { engine: usize, life: u32 },
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at
            .total_cmp(&other.at)
            .then(self.order.cmp(&other.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
