//! Small fleets and a scheduler around them.
#![allow(dead_code, reason = "every test file uses another part")]

use routing::fleet::{Endpoint, Engine, Gauges, ModelServer, ObjectName, Pod, PodId};
use routing::prompt::Prompt;
use routing::schedule::{
    Ask, Matches, Observer, Plan, Row, ScheduleError, Scheduler, SchedulerConfig, Score, Total,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod `default/pod-ID` without a reading.
pub(crate) fn pod(id: u32) -> Arc<Pod> {
    Arc::new(Pod {
        id: PodId(id),
        name: ObjectName::new("default", &format!("pod-{id}")),
        uid: None,
        endpoint: Endpoint {
            host: "127.0.0.1".into(),
            port: 8000,
        },
        engine: Engine::Vllm,
        labels: BTreeMap::new(),
        load: Arc::default(),
    })
}

/// A pod with a reading.
pub(crate) fn known(id: u32, gauges: Gauges) -> Arc<Pod> {
    let pod = pod(id);
    pod.load.publish(&gauges, 1);
    pod
}

/// A pod with a reading that has this many requests waiting.
pub(crate) fn waiting(id: u32, waiting: u32) -> Arc<Pod> {
    known(
        id,
        Gauges {
            waiting,
            ..Gauges::default()
        },
    )
}

pub(crate) fn server(pods: Vec<Arc<Pod>>) -> ModelServer {
    ModelServer::new(
        ObjectName::new("default", "server"),
        None,
        Engine::Vllm,
        routing::fleet::TrafficPolicy::default(),
        Value::Null,
        pods,
    )
}

/// A scheduler with these Filter plugins, and Score plugins of weight 1.
pub(crate) fn scheduler(filters: &[&str], scores: &[&str]) -> Scheduler {
    let weighted: Vec<_> = scores.iter().map(|name| (*name, 1)).collect();
    configured(filters, &weighted, json!([]))
}

pub(crate) fn configured(
    filters: &[&str],
    scores: &[(&str, i64)],
    plugin_config: Value,
) -> Scheduler {
    let scores: Vec<_> = scores
        .iter()
        .map(|(name, weight)| json!({"name": name, "weight": weight}))
        .collect();
    let value = json!({
        "pluginConfig": plugin_config,
        "plugins": {"Filter": {"enabled": filters}, "Score": {"enabled": scores}},
    });
    let (config, warnings) = SchedulerConfig::from_value(&value).expect("valid");
    assert_eq!(warnings, []);
    Scheduler::new(&config)
}

/// What an observer saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) steps: Vec<String>,
    pub(crate) scores: BTreeMap<&'static str, BTreeMap<u32, u8>>,
    pub(crate) filtered_by: BTreeMap<u32, &'static str>,
    pub(crate) matches: Option<Matches>,
    pub(crate) totals: BTreeMap<u32, Total>,
}

impl Observer for Seen {
    fn started(&mut self) {
        self.steps.push("started".into());
    }

    fn filtered(&mut self, plugin: &'static str, rows: &[Row<'_>], kept: &[bool]) {
        self.steps.push(format!("{plugin} filtered"));
        let dropped = rows.iter().zip(kept).filter(|(_, kept)| !**kept);
        self.filtered_by
            .extend(dropped.map(|(row, _)| (row.pod.id.0, plugin)));
    }

    fn scored(&mut self, plugin: &'static str, rows: &[Row<'_>], scores: &[Score]) {
        self.steps.push(format!("{plugin} scored"));
        let scores = rows
            .iter()
            .zip(scores)
            .map(|(row, score)| (row.pod.id.0, score.get()));
        self.scores.insert(plugin, scores.collect());
    }

    fn abstained(&mut self, plugin: &'static str) {
        self.steps.push(format!("{plugin} abstained"));
    }

    fn matched(&mut self, rows: &[Row<'_>], matches: &Matches) {
        assert_eq!(rows.len(), matches.blocks.len());
        self.steps.push(format!(
            "{} of {} matched",
            matches.best,
            matches.hashes.len()
        ));
        self.matches = Some(matches.clone());
    }

    fn totals(&mut self, rows: &[Row<'_>], totals: &[Total]) {
        self.steps.push("totals".into());
        self.totals = rows
            .iter()
            .zip(totals)
            .map(|(row, total)| (row.pod.id.0, *total))
            .collect();
    }
}

impl Seen {
    /// The scores of a plugin, ascending by pod id.
    pub(crate) fn by(&self, plugin: &str) -> Vec<u8> {
        self.scores[plugin].values().copied().collect()
    }
}

/// Plans a request for model `m`.
pub(crate) fn plan(
    scheduler: &Scheduler,
    server: &ModelServer,
    prompt: &str,
    draw: u64,
) -> (Result<Plan, ScheduleError>, Seen) {
    let mut seen = Seen::default();
    let prompt = Prompt::from_text(prompt);
    let plan = scheduler.plan(
        &Ask {
            model: "m",
            prompt: &prompt,
            draw,
        },
        server,
        &mut seen,
    );
    (plan, seen)
}

/// The scores that one plugin alone gives, ascending by pod id.
pub(crate) fn scores_of(scheduler: &Scheduler, server: &ModelServer, plugin: &str) -> Vec<u8> {
    let (plan, seen) = plan(scheduler, server, "", 0);
    plan.expect("a plan");
    seen.by(plugin)
}

/// The ids of a plan's pods, best first.
pub(crate) fn ids(plan: &Plan) -> Vec<u32> {
    plan.attempts.iter().map(|pod| pod.id.0).collect()
}
