//! Choosing and asking the pods of a request that may have a session: bound before its pods are asked, and bound anew when
//! they fail. The one procedure for single pods and for pairs of pods; a [`Way`] says what differs.

use super::observe::Watcher;
use crate::error::Refusal;
use crate::forward::{Answer, cap, is_retryable};
use crate::record::Record;
use crate::sticky::Session;
use routing::fleet::{ModelServer, Pod};
use routing::schedule::{Memo, ScheduleError};
use std::sync::Arc;

/// The pod that was asked, and the prefill pod of a pair.
pub(super) type Asked<'p> = (&'p Arc<Pod>, Option<&'p Arc<Pod>>);

/// How a request is served: by one pod, or by a pair of pods.
pub(super) trait Way {
    /// What is asked, best first.
    type Plan;

    fn server(&self) -> &ModelServer;

    /// The plan of what the session is bound to, if that is still there and the filters let it pass.
    fn pinned(&self, session: &Session<'_>, watcher: &mut Watcher<'_>) -> Option<Self::Plan>;

    /// The plan over all there is, without what has `failed` first.
    fn plan(
        &self,
        failed: Option<&Self::Plan>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Self::Plan, ScheduleError>;

    /// What is asked first.
    fn first<'p>(plan: &'p Self::Plan, failed: Option<&Self::Plan>) -> Option<Asked<'p>>;

    /// Asks until somebody answers, after what has `failed`.
    async fn ask(
        &self,
        plan: &Self::Plan,
        failed: Option<&Self::Plan>,
        record: &mut Record,
    ) -> Result<Answer, Refusal>;

    /// What served, as the session is to be bound.
    fn served<'p>(&self, plan: &'p Self::Plan, record: &'p Record) -> Option<Asked<'p>>;

    /// What is to be recorded for the pods that served.
    fn memo(plan: Self::Plan) -> Option<Memo>;
}

/// The plan of a request, and whether its session pinned it.
pub(super) struct Chosen<P> {
    pub(super) plan: P,
    pub(super) pinned: bool,
}

/// Chooses what the session is bound to, or else as for any other request.
pub(super) fn choose<W: Way>(
    way: &W,
    session: Option<&Session<'_>>,
    record: &mut Record,
) -> Result<Chosen<W::Plan>, ScheduleError> {
    let app = Arc::clone(&record.app);
    let mut watcher = Watcher::new(&app, record);
    let bound = session.and_then(|session| way.pinned(session, &mut watcher));
    let chosen = match bound {
        Some(plan) => Ok(Chosen { plan, pinned: true }),
        None => way.plan(None, &mut watcher).map(|plan| Chosen {
            plan,
            pinned: false,
        }),
    };
    let seen = watcher.finish();
    if let Ok(chosen) = &chosen {
        record.trail.decided(seen, chosen.pinned);
    }
    chosen
}

/// Asks in order, and binds the session to what is asked first before, to what served after.
///
/// When a pinned request fails before the first byte, it is scheduled over the others: a session outlives its pods.
pub(super) async fn keep<W: Way>(
    way: &W,
    mut session: Session<'_>,
    chosen: Chosen<W::Plan>,
    record: &mut Record,
) -> Result<(Answer, Option<Memo>), Refusal> {
    let Chosen { mut plan, pinned } = chosen;
    bind::<W>(&mut session, &plan, None).await;
    let mut answer = way.ask(&plan, None, record).await;
    if pinned
        && !answer.as_ref().is_ok_and(settles)
        && let Some(others) = elsewhere(way, &plan, record)
    {
        let first = record
            .asked()
            .map(|(pod, prefill)| (Arc::clone(pod), prefill.cloned()));
        bind::<W>(&mut session, &others, Some(&plan)).await;
        let second = way.ask(&others, Some(&plan), record).await;
        // An engine that answered counts more than one that did not.
        match first {
            Some((pod, prefill)) if answer.is_ok() && second.is_err() => {
                record.served_by(&pod, prefill.as_ref());
            }
            _ => {
                answer = second;
                plan = others;
            }
        }
    }
    let answer = answer?;
    if settles(&answer)
        && let Some((pod, prefill)) = way.served(&plan, record)
    {
        session.served_by(pod, prefill.map(|pod| &**pod)).await;
    }
    Ok((answer, W::memo(plan)))
}

/// A plan over what has not failed, if the policy allows another attempt.
fn elsewhere<W: Way>(way: &W, failed: &W::Plan, record: &mut Record) -> Option<W::Plan> {
    if cap(&way.server().policy) <= 1 {
        return None;
    }
    let app = Arc::clone(&record.app);
    let mut watcher = Watcher::new(&app, record);
    let plan = way.plan(Some(failed), &mut watcher);
    let seen = watcher.finish();
    if plan.is_ok() {
        record.trail.decided(seen, false);
    }
    plan.ok()
}

/// Binds the session to what is asked first.
async fn bind<W: Way>(session: &mut Session<'_>, plan: &W::Plan, failed: Option<&W::Plan>) {
    if let Some((pod, prefill)) = W::first(plan, failed) {
        session.bind(pod, prefill.map(|pod| &**pod)).await;
    }
}

/// Whether an answer is no reason to ask anybody else.
fn settles(answer: &Answer) -> bool {
    !is_retryable(answer.head.status)
}
