//! A request that one pod answers.

use super::keep::{Asked, Way};
use super::observe::Watcher;
use crate::app::App;
use crate::error::Refusal;
use crate::forward::{Answer, forward};
use crate::record::Record;
use crate::sticky::Session;
use crate::upstream::{Head, Payload};
use routing::fleet::ModelServer;
use routing::schedule::{Ask, Memo, Plan, ScheduleError};

/// A request on its way to the pods of a server.
pub(super) struct One<'a> {
    pub(super) app: &'a App,
    pub(super) server: &'a ModelServer,
    pub(super) ask: Ask<'a>,
    pub(super) head: Head,
    pub(super) payload: Payload,
}

impl Way for One<'_> {
    type Plan = Plan;

    fn server(&self) -> &ModelServer {
        self.server
    }

    fn pinned(&self, session: &Session<'_>, watcher: &mut Watcher<'_>) -> Option<Plan> {
        let pod = session.pod(self.server)?;
        self.app.scheduler.pinned(&self.ask, pod, watcher)
    }

    fn plan(
        &self,
        failed: Option<&Plan>,
        watcher: &mut Watcher<'_>,
    ) -> Result<Plan, ScheduleError> {
        let scheduler = &self.app.scheduler;
        let mut plan = match failed {
            None => scheduler.plan(&self.ask, self.server, watcher)?,
            Some(failed) => {
                scheduler.plan_without(&self.ask, self.server, &failed.attempts, watcher)?
            }
        };
        if let Some(is_behind) = self.app.is_behind() {
            plan.put_behind(is_behind);
        }
        Ok(plan)
    }

    fn first<'p>(plan: &'p Plan, _: Option<&Plan>) -> Option<Asked<'p>> {
        plan.attempts.first().map(|pod| (pod, None))
    }

    async fn ask(
        &self,
        plan: &Plan,
        failed: Option<&Plan>,
        record: &mut Record,
    ) -> Result<Answer, Refusal> {
        let Self {
            app, server, head, ..
        } = self;
        let tried = failed.map_or(0, |plan| plan.attempts.len());
        let pods = &plan.attempts;
        forward(app, server, pods, tried, head, &self.payload, record).await
    }

    fn served<'p>(&self, _: &'p Plan, record: &'p Record) -> Option<Asked<'p>> {
        record.asked()
    }

    fn memo(plan: Plan) -> Option<Memo> {
        plan.memo
    }
}
