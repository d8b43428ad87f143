//! The pipeline: filter, score, pick.

use super::config::SchedulerConfig;
use super::row::picture;
use super::{
    Ask, FilterPlugin, MAX_ATTEMPTS, Memo, Observer, Plan, PrefixCacheArgs, Row, Rows,
    ScheduleError, Score, ScorePlugin, Total, Verdict, rank,
};
use crate::fleet::{ModelServer, Pod};
use prefix_index::{PodId, PrefixIndex, Recorded};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Chooses pods for requests.
#[derive(Debug)]
pub struct Scheduler {
    filters: Vec<Box<dyn FilterPlugin>>,
    scores: Vec<Weighing>,
}

/// A Score plugin and what a point from it counts.
#[derive(Debug)]
struct Weighing {
    plugin: Box<dyn ScorePlugin>,
    weight: u64,
}

/// The prefix-cache plugin as it runs.
#[derive(Clone, Copy, Debug)]
pub struct PrefixCacheInside<'a> {
    /// Its arguments.
    pub args: &'a PrefixCacheArgs,
    /// What a point of its score counts.
    pub weight: u64,
    /// What it has recorded.
    pub index: &'a PrefixIndex,
}

impl Scheduler {
    /// A scheduler with these plugins, and nothing recorded.
    #[must_use]
    pub fn new(config: &SchedulerConfig) -> Self {
        let filters = config
            .filters()
            .filter_map(|plugin| Some((plugin.filter?)(config.args())))
            .collect();
        let scores = config.scores().iter().filter_map(|weighted| {
            let plugin = (weighted.plugin.score?)(config.args());
            Some(Weighing {
                plugin,
                weight: weighted.weight.get(),
            })
        });
        Self {
            filters,
            scores: scores.collect(),
        }
    }

    /// A scheduler with plugins that are not in the table.
    #[must_use]
    pub fn with_plugins(
        filters: Vec<Box<dyn FilterPlugin>>,
        scores: Vec<(Box<dyn ScorePlugin>, u64)>,
    ) -> Self {
        let scores = scores
            .into_iter()
            .map(|(plugin, weight)| Weighing { plugin, weight })
            .collect();
        Self { filters, scores }
    }

    /// Chooses among a server's pods. Records nothing.
    ///
    /// # Errors
    ///
    /// If there are no pods, or a Filter plugin drops the last.
    pub fn plan(
        &self,
        ask: &Ask<'_>,
        server: &ModelServer,
        observer: &mut dyn Observer,
    ) -> Result<Plan, ScheduleError> {
        self.plan_among(ask, server.pods(), observer)
    }

    /// Chooses among a server's pods but those that have failed. Records nothing.
    ///
    /// # Errors
    ///
    /// As [`Self::plan`].
    pub fn plan_without(
        &self,
        ask: &Ask<'_>,
        server: &ModelServer,
        failed: &[Arc<Pod>],
        observer: &mut dyn Observer,
    ) -> Result<Plan, ScheduleError> {
        let is_left = |pod: &&Arc<Pod>| failed.iter().all(|f| f.id != pod.id);
        let others: Vec<_> = server.pods().iter().filter(is_left).cloned().collect();
        self.plan_among(ask, &others, observer)
    }

    /// Chooses among these pods: the decode pods or the prefill pods of a server. Records nothing.
    ///
    /// # Errors
    ///
    /// As [`Self::plan`].
    pub fn plan_among(
        &self,
        ask: &Ask<'_>,
        pods: &[Arc<Pod>],
        observer: &mut dyn Observer,
    ) -> Result<Plan, ScheduleError> {
        let mut rows = picture(pods);
        if rows.is_empty() {
            return Err(ScheduleError::NoPods);
        }
        for filter in &self.filters {
            run_filter(&**filter, ask, &mut rows, observer)?;
        }
        let mut totals: SmallVec<[Total; 16]> = smallvec![0; rows.len()];
        let mut memo = None;
        for Weighing { plugin, weight } in &self.scores {
            let scored = run_score(&**plugin, *weight, ask, &rows, &mut totals, observer)?;
            memo = memo.or(scored);
        }
        observer.totals(&rows, &totals);
        Ok(Plan {
            attempts: rank::best(&rows, &totals, ask.draw),
            memo,
        })
    }

    /// The plan for a request that is bound to a pod: that pod alone, nothing scored, and nothing to record unless a
    /// plugin was told to (`recordSticky` of prefix-cache). `None` when the Filter plugins drop the pod; the request is
    /// then to be planned as any other.
    #[must_use]
    pub fn pinned(
        &self,
        ask: &Ask<'_>,
        pod: &Arc<Pod>,
        observer: &mut dyn Observer,
    ) -> Option<Plan> {
        if !self.passes(ask, pod, observer) {
            return None;
        }
        let attempts: SmallVec<[_; MAX_ATTEMPTS]> = smallvec![Arc::clone(pod)];
        Some(Plan {
            attempts,
            memo: self.pinned_memo(ask),
        })
    }

    /// Whether all Filter plugins keep a pod.
    pub(super) fn passes(
        &self,
        ask: &Ask<'_>,
        pod: &Arc<Pod>,
        observer: &mut dyn Observer,
    ) -> bool {
        let mut rows = picture(std::slice::from_ref(pod));
        let mut filters = self.filters.iter();
        filters.all(|filter| run_filter(&**filter, ask, &mut rows, observer).is_ok())
    }

    /// What is to be recorded of a request that was not scored because a session binds it.
    pub(super) fn pinned_memo(&self, ask: &Ask<'_>) -> Option<Memo> {
        self.scores.iter().find_map(|s| s.plugin.pinned(ask))
    }

    /// A pod may get requests from now on. To be called before its first request: what is recorded for a pod that was
    /// not admitted is lost.
    pub fn admit(&self, pod: PodId) {
        self.scores.iter().for_each(|s| s.plugin.admit(pod));
    }

    /// A pod is gone: drops what was recorded for it and returns the number of entries. What is recorded for it later
    /// leaves nothing behind.
    pub fn forget(&self, pod: PodId) -> usize {
        self.scores.iter().map(|s| s.plugin.forget(pod)).sum()
    }

    /// A pod served the request of a plan's memo.
    pub fn served(&self, memo: &Memo, pod: PodId) -> Recorded {
        let recorded = self.scores.iter().map(|s| s.plugin.served(memo, pod));
        recorded.fold(Recorded::default(), |sum, r| Recorded {
            added: sum.added + r.added,
            refreshed: sum.refreshed + r.refreshed,
            evicted: sum.evicted + r.evicted,
        })
    }

    /// Names of the Filter plugins, in the order in which they run.
    pub fn filters(&self) -> impl Iterator<Item = &'static str> {
        self.filters.iter().map(|plugin| plugin.name())
    }

    /// Names and weights of the Score plugins.
    pub fn scores(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.scores.iter().map(|s| (s.plugin.name(), s.weight))
    }

    /// The prefix-cache plugin, if it scores; for those who look inside.
    #[must_use]
    pub fn prefix_cache(&self) -> Option<PrefixCacheInside<'_>> {
        self.scores.iter().find_map(|weighing| {
            let (args, index) = weighing.plugin.prefix_cache()?;
            Some(PrefixCacheInside {
                args,
                weight: weighing.weight,
                index,
            })
        })
    }

    /// Number of block hashes that are recorded for all pods together.
    #[must_use]
    pub fn prefix_entries(&self) -> usize {
        self.scores.iter().map(|s| s.plugin.entries()).sum()
    }
}

fn run_filter(
    filter: &dyn FilterPlugin,
    ask: &Ask<'_>,
    rows: &mut Rows<'_>,
    observer: &mut dyn Observer,
) -> Result<(), ScheduleError> {
    observer.started();
    let kept: SmallVec<[bool; 64]> = rows.iter().map(|row| filter.keep(ask, row)).collect();
    observer.filtered(filter.name(), rows, &kept);
    let mut verdicts = kept.iter();
    rows.retain(|_| verdicts.next() == Some(&true));
    if rows.is_empty() {
        Err(ScheduleError::AllFiltered {
            plugin: filter.name(),
        })
    } else {
        Ok(())
    }
}

/// Adds a plugin's weighted scores to the totals and returns what it wants recorded.
fn run_score(
    plugin: &dyn ScorePlugin,
    weight: u64,
    ask: &Ask<'_>,
    rows: &[Row<'_>],
    totals: &mut [Total],
    observer: &mut dyn Observer,
) -> Result<Option<Memo>, ScheduleError> {
    observer.started();
    let mut scores: SmallVec<[Score; 64]> = smallvec![Score::UNWRITTEN; rows.len()];
    let verdict = plugin.score(ask, rows, &mut scores);
    if verdict == Verdict::Abstained {
        observer.abstained(plugin.name());
        return Ok(None);
    }
    if scores.contains(&Score::UNWRITTEN) {
        return Err(ScheduleError::Unscored {
            plugin: plugin.name(),
        });
    }
    observer.scored(plugin.name(), rows, &scores);
    for (total, score) in totals.iter_mut().zip(&scores) {
        *total += Total::from(score.get()) * Total::from(weight);
    }
    let Verdict::Matched(matches) = verdict else {
        return Ok(None);
    };
    observer.matched(rows, &matches);
    Ok(Some(Memo::Prefix(matches.hashes)))
}
