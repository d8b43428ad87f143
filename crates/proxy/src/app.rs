//! What all requests share.

use crate::access_log::{Format, LogWriter};
use crate::auth::Auth;
use crate::debug::ConfigurationFile;
use crate::doctor::StartWarning;
use crate::insight::{DecisionHeader, Insight};
use crate::lifecycle::Lifecycle;
use crate::metrics::{Metrics, ModelLabel, Text};
use crate::recording::Recorder;
use crate::sticky::Sessions;
use crate::upstream::Upstreams;
use arc_swap::ArcSwap;
use routing::fleet::{Fleet, Pod, PodId};
use routing::schedule::{Memo, Scheduler};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Limits and periods, all with defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest request body, as sent and as decoded, in bytes.
    pub max_body: usize,
    /// How often each pod's metrics are read.
    pub scrape_interval: Duration,
    /// Longest time that a response head waits for the first byte of its body; `None` waits as long as it takes.
    ///
    /// A real engine sends the head of a stream at once, while the request still waits in its queue. As long as the
    /// head is held, another pod can take over.
    pub head_hold: Option<Duration>,
    /// Whether responses name the pod that gave them, in `x-kthena-backend-pod`.
    pub shows_pod: bool,
    /// How long a pod that did not take a connection is asked after the others; zero never does that.
    pub failed_pod_backoff: Duration,
    /// Which responses tell why their pod was chosen, in `x-kthena-decision`.
    pub decision_header: DecisionHeader,
    /// Whether the debug pages show how prompts begin.
    pub shows_prompts: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            scrape_interval: Duration::from_secs(1),
            head_hold: None,
            shows_pod: false,
            failed_pod_backoff: Duration::ZERO,
            decision_header: DecisionHeader::Never,
            shows_prompts: false,
        }
    }
}

/// The parts that all requests share; each is small and has one purpose.
#[derive(Debug)]
pub struct App {
    /// Limits and periods.
    pub settings: Settings,
    /// Filters, scores and picks.
    pub scheduler: Scheduler,
    /// Connections to the pods.
    pub upstreams: Upstreams,
    /// Metric families.
    pub metrics: Metrics,
    /// The access log, unless it is off.
    pub access_log: Option<(Format, LogWriter)>,
    /// The bindings of sessions to pods.
    pub sessions: Sessions,
    /// The validation of tokens, unless it is off.
    pub auth: Option<Arc<Auth>>,
    /// What was warned of at the start, for whoever asks later.
    pub warnings: Vec<StartWarning>,
    /// Where the configuration was read from, if it was.
    pub configuration: Option<ConfigurationFile>,
    /// Starting, serving, draining.
    pub lifecycle: Lifecycle,
    /// Where served requests are recorded, if they are.
    pub recorder: Option<Recorder>,
    /// What the router knows of its decisions.
    pub(crate) insight: Insight,
    fleet: ArcSwap<Fleet>,
    pub(crate) fleet_changed: Notify,
    started: Instant,
}

impl App {
    /// An application with an empty fleet, for everyone, with its sessions kept in memory.
    #[must_use]
    pub fn new(
        settings: Settings,
        scheduler: Scheduler,
        metrics: Metrics,
        log: Option<(Format, LogWriter)>,
    ) -> Self {
        Self {
            settings,
            scheduler,
            upstreams: Upstreams::default(),
            metrics,
            access_log: log,
            sessions: Sessions::in_memory(),
            auth: None,
            warnings: Vec::new(),
            configuration: None,
            lifecycle: Lifecycle::default(),
            recorder: None,
            insight: Insight::default(),
            fleet: ArcSwap::default(),
            fleet_changed: Notify::new(),
            started: Instant::now(),
        }
    }

    /// The same with its sessions kept elsewhere.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Sessions) -> Self {
        self.sessions = sessions;
        self
    }

    /// The same with its served requests recorded.
    #[must_use]
    pub fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The same, for clients with a valid token only.
    #[must_use]
    pub fn with_auth(mut self, auth: Arc<Auth>) -> Self {
        self.auth = Some(auth);
        self
    }

    /// The same, with what was warned of at the start.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<StartWarning>) -> Self {
        self.warnings = warnings;
        self
    }

    /// The same, with the file that its configuration was read from.
    #[must_use]
    pub fn with_configuration(mut self, file: ConfigurationFile) -> Self {
        self.configuration = Some(file);
        self
    }

    /// The current snapshot. A request takes it once and keeps it to its end.
    #[must_use]
    pub fn fleet(&self) -> Arc<Fleet> {
        self.fleet.load_full()
    }

    /// Publishes a new snapshot. Called by one writer.
    ///
    /// New pods are known to the plugins and have a pool before a request can pick them; what is kept for pods that
    /// are gone is freed after no new request can pick them. Requests in flight keep the old snapshot.
    pub fn adopt(&self, fleet: Arc<Fleet>) {
        let old = self.fleet();
        for id in fleet.pods_not_in(&old) {
            self.scheduler.admit(id);
        }
        self.upstreams.adopt(&fleet);
        self.fleet.store(Arc::clone(&fleet));
        for id in old.pods_not_in(&fleet) {
            self.scheduler.forget(id);
        }
        self.fleet_changed.notify_one();
    }

    /// A pod has served the request of a memo, one for this model.
    pub(crate) fn served(&self, memo: &Memo, pod: PodId, model: &Text) {
        let recorded = self.scheduler.served(memo, pod);
        if recorded.evicted > 0 {
            self.insight.windows.evicted(recorded.evicted);
            self.insight.working_set.evicting();
            let label = ModelLabel {
                model: model.clone(),
            };
            let evictions = self.metrics.evictions.get_or_create(&label);
            evictions.inc_by(recorded.evicted as u64);
        }
    }

    /// A pod did not take a connection: others are asked first for a while, if that is wanted.
    pub(crate) fn took_no_connection(&self, pod: &Pod) {
        let backoff = self.settings.failed_pod_backoff;
        if !backoff.is_zero() {
            let backoff = u64::try_from(backoff.as_millis()).unwrap_or(u64::MAX);
            pod.load
                .put_behind_until(self.uptime_ms().saturating_add(backoff));
        }
    }

    /// Which pods are to be asked after others now; `None` when that is not wanted at all.
    pub(crate) fn is_behind(&self) -> Option<impl Fn(&Pod) -> bool + use<>> {
        let now = self.uptime_ms();
        let wanted = !self.settings.failed_pod_backoff.is_zero();
        wanted.then_some(move |pod: &Pod| pod.load.is_behind(now))
    }

    /// Time since the start.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Milliseconds since the start, for ages.
    #[must_use]
    pub fn uptime_ms(&self) -> u64 {
        u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX)
    }
}
