//! Forwarding a request of a session: bound before its pod is asked, and bound anew when that pod fails.

use crate::app::App;
use crate::error::Refusal;
use crate::forward::{Answer, cap, forward, is_retryable};
use crate::front::observe::Watcher;
use crate::record::Record;
use crate::sticky::Session;
use crate::upstream::{Head, Payload};
use routing::fleet::{ModelServer, Pod};
use routing::schedule::{Ask, Memo, Plan, ScheduleError};
use std::sync::Arc;

/// The plan of a request, and whether its session pinned it to one pod.
pub(super) struct Chosen {
    pub(super) plan: Plan,
    pub(super) pinned: bool,
}

/// Chooses the pod that the session is bound to, if the filters let it pass, or else as for any other request.
pub(super) fn choose(
    app: &App,
    ask: &Ask<'_>,
    server: &ModelServer,
    session: Option<&Session<'_>>,
    watcher: &mut Watcher<'_>,
) -> Result<Chosen, ScheduleError> {
    let bound = session.and_then(|session| session.pod(server));
    if let Some(plan) = bound.and_then(|pod| app.scheduler.pinned(ask, pod, watcher)) {
        return Ok(Chosen { plan, pinned: true });
    }
    let plan = app.scheduler.plan(ask, server, watcher)?;
    let pinned = false;
    Ok(Chosen { plan, pinned })
}

/// A request on its way to the pods.
pub(super) struct Outgoing<'a> {
    pub(super) app: &'a App,
    pub(super) server: &'a ModelServer,
    pub(super) ask: &'a Ask<'a>,
    pub(super) head: &'a Head,
    pub(super) payload: &'a Payload,
}

impl Outgoing<'_> {
    /// Asks the pods in order, and binds the session to the first of them before, to the one that served after.
    ///
    /// When the pod of a pinned request fails before the first byte, the request is scheduled over the others: a session
    /// outlives its pod. The memo of that second plan is returned, too.
    pub(super) async fn keep(
        &self,
        mut session: Session<'_>,
        attempts: &[Arc<Pod>],
        pinned: bool,
        record: &mut Record,
    ) -> Result<(Answer, Option<Memo>), Refusal> {
        if let Some(first) = attempts.first() {
            session.bind(first, None).await;
        }
        let mut answer = self.forward(attempts, 0, record).await;
        let mut memo = None;
        if pinned && !answer.as_ref().is_ok_and(settles) {
            (answer, memo) = self.elsewhere(&mut session, attempts, answer, record).await;
        }
        if let Ok(answer) = &answer
            && settles(answer)
        {
            session.served_by(answer.in_flight.pod(), None).await;
        }
        answer.map(|answer| (answer, memo))
    }

    /// Asks the pods that have not failed yet. `answer` is what the first one gave.
    async fn elsewhere(
        &self,
        session: &mut Session<'_>,
        failed: &[Arc<Pod>],
        answer: Result<Answer, Refusal>,
        record: &mut Record,
    ) -> (Result<Answer, Refusal>, Option<Memo>) {
        if cap(&self.server.policy) <= failed.len() {
            return (answer, None);
        }
        let is_left = |pod: &&Arc<Pod>| failed.iter().all(|f| f.id != pod.id);
        let others: Vec<_> = self.server.pods().iter().filter(is_left).cloned().collect();
        let planned = {
            let mut watcher = Watcher::new(&self.app.metrics, record.model_label());
            let planned = self
                .app
                .scheduler
                .plan_among(self.ask, &others, &mut watcher);
            watcher.finish();
            planned
        };
        let Ok(plan) = planned else {
            return (answer, None);
        };
        if let Some(first) = plan.attempts.first() {
            session.bind(first, None).await;
        }
        let second = self.forward(&plan.attempts, failed.len(), record).await;
        match (answer, second) {
            // An engine that answered counts more than one that did not.
            (Ok(first), Err(_)) => {
                record.served_by(first.in_flight.pod());
                (Ok(first), None)
            }
            (_, second) => (second, plan.memo),
        }
    }

    async fn forward(
        &self,
        pods: &[Arc<Pod>],
        tried: usize,
        record: &mut Record,
    ) -> Result<Answer, Refusal> {
        let Self { app, server, .. } = self;
        forward(app, server, pods, tried, self.head, self.payload, record).await
    }
}

/// Whether an answer is no reason to ask another pod.
pub(super) fn settles(answer: &Answer) -> bool {
    !is_retryable(answer.head.status)
}
