//! One request's decision as it comes about: what each pass of the scheduler over some pods found.

use prefix_index::PodId;
use routing::fleet::ObjectName;
use routing::schedule::{PrefixCacheArgs, Row, Score, Total};
use smallvec::SmallVec;

/// What was seen while a request was scheduled.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Every score, for requests that are looked at closely.
    pub(crate) passes: Option<Passes>,
    /// How much of the prompt the pods are thought to hold.
    pub(crate) predicted: Predicted,
}

/// Blocks of the prompt that were hashed, and who holds how many. Pods without any are not listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predicted {
    pub(crate) hashed: u32,
    held: SmallVec<[(PodId, u32); 8]>,
}

impl Predicted {
    /// Takes what a look-up over these rows found.
    pub(crate) fn add(&mut self, rows: &[Row<'_>], blocks: &[u32], hashed: usize) {
        self.hashed = u32::try_from(hashed).unwrap_or(u32::MAX);
        let found = rows.iter().zip(blocks).filter(|(_, held)| **held > 0);
        self.held
            .extend(found.map(|(row, &held)| (row.pod.id, held)));
    }

    /// The share of a prompt of so many bytes that a pod is thought to hold; `None` when nothing was looked up. Of what lies
    /// beyond the blocks that are hashed nothing is known, and counts as not held.
    pub(crate) fn share(&self, pod: PodId, bytes: usize, args: &PrefixCacheArgs) -> Option<f64> {
        let hashed = self.hashed as usize;
        let whole = match hashed < args.max_blocks {
            true => hashed as f64,
            false => (bytes as f64 / args.block_bytes as f64).max(hashed as f64),
        };
        (hashed > 0).then(|| f64::from(self.blocks(pod)) / whole)
    }

    /// Leading blocks of the prompt that a pod is thought to hold.
    pub(crate) fn blocks(&self, pod: PodId) -> u32 {
        let last = self.held.iter().rev().find(|(id, _)| *id == pod);
        last.map_or(0, |(_, held)| *held)
    }
}

/// The passes of one decision: one, or for a pair of pods one over the decode pods and one over each group's prefill
/// pods.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    all: Vec<Pass>,
    /// Pods that each filter has dropped, if any.
    filtered: Vec<(&'static str, u32)>,
}

/// The pods that passed the filters, column by column.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pods: Vec<(PodId, ObjectName)>,
    scores: Vec<(&'static str, Vec<Score>)>,
    /// Empty when no prefix was looked up.
    matched: Vec<u32>,
    /// Empty until the pass ends.
    totals: Vec<Total>,
}

impl Pass {
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        (0..self.pods.len()).map(move |at| Place { pass: self, at })
    }
}

/// One pod of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pass: &'a Pass,
    at: usize,
}

impl Passes {
    pub(crate) fn filtered(&mut self, plugin: &'static str, kept: &[bool]) {
        let dropped = kept.iter().filter(|&&kept| !kept).count() as u32;
        if dropped == 0 {
            return;
        }
        match self.filtered.iter_mut().find(|(name, _)| *name == plugin) {
            Some((_, count)) => *count += dropped,
            None => self.filtered.push((plugin, dropped)),
        }
    }

    /// Pods that each filter has dropped, of those that dropped any.
    pub(crate) fn dropped(&self) -> &[(&'static str, u32)] {
        &self.filtered
    }

    pub(crate) fn scored(&mut self, plugin: &'static str, rows: &[Row<'_>], scores: &[Score]) {
        self.open(rows).scores.push((plugin, scores.to_vec()));
    }

    pub(crate) fn matched(&mut self, rows: &[Row<'_>], blocks: &[u32]) {
        self.open(rows).matched = blocks.to_vec();
    }

    pub(crate) fn totals(&mut self, rows: &[Row<'_>], totals: &[Total]) {
        self.open(rows).totals = totals.to_vec();
    }

    /// The pass that is under way.
    fn open(&mut self, rows: &[Row<'_>]) -> &mut Pass {
        if self.all.last().is_none_or(|pass| !pass.totals.is_empty()) {
            let name = |row: &Row<'_>| (row.pod.id, row.pod.name.clone());
            self.all.push(Pass {
                pods: rows.iter().map(name).collect(),
                ..Pass::default()
            });
        }
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    /// What was found for a pod.
    pub(crate) fn of(&self, pod: PodId) -> Option<Place<'_>> {
        self.places().find(|place| place.id() == Some(pod))
    }

    /// All pods that passed the filters.
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.all.iter().flat_map(Pass::places)
    }

    /// Those of the first pass, and those of the passes after it.
    pub(crate) fn sides(&self) -> [Vec<Place<'_>>; 2] {
        let (first, others) = self.all.split_at(self.all.len().min(1));
        [first, others].map(|passes| passes.iter().flat_map(Pass::places).collect())
    }
}

impl<'a> Place<'a> {
    fn id(&self) -> Option<PodId> {
        self.pass.pods.get(self.at).map(|(id, _)| *id)
    }

    pub(crate) fn name(&self) -> Option<&'a ObjectName> {
        self.pass.pods.get(self.at).map(|(_, name)| name)
    }

    pub(crate) fn total(&self) -> Total {
        self.pass.totals.get(self.at).copied().unwrap_or_default()
    }

    pub(crate) fn matched(&self) -> u32 {
        self.pass.matched.get(self.at).copied().unwrap_or_default()
    }

    /// The plugins that scored, with what they gave.
    pub(crate) fn scores(&self) -> impl Iterator<Item = (&'static str, u8)> {
        let at = self.at;
        let column = move |(plugin, scores): &(&'static str, Vec<Score>)| {
            scores.get(at).map(|score| (*plugin, score.get()))
        };
        self.pass.scores.iter().filter_map(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_predicted_as_a_whole() {
        let pod = PodId(7);
        let predicted = |hashed, held| Predicted {
            hashed,
            held: [(pod, held)].into_iter().collect(),
        };
        let args = PrefixCacheArgs {
            block_bytes: 64,
            max_blocks: 128,
            ..PrefixCacheArgs::default()
        };
        let share = |hashed, held, bytes| predicted(hashed, held).share(pod, bytes, &args);
        assert_eq!(
            share(128, 128, 32_768),
            Some(0.25),
            "most was not looked at"
        );
        assert_eq!(share(128, 64, 8192), Some(0.5));
        assert_eq!(share(10, 10, 700), Some(1.0), "escapes are spelled longer");
        assert_eq!(share(0, 0, 0), None);
    }
}
