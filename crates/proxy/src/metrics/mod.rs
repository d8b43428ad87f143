//! Every metric family of the router, declared in this folder and nowhere else.

mod labels;
mod pods;
mod process;

pub use labels::{
    BackendType, Binding, DurationLabels, ModelLabel, PhaseLabels, PluginLabels, RequestLabels,
    StageLabel, Status, Text, TokenLabels, UpstreamLabels,
};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use routing::fleet::Fleet;
use std::fmt;
use std::sync::Arc;

/// Content type of the metrics page.
pub use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// Buckets of request durations, in seconds.
const REQUEST_SECONDS: [f64; 13] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// Buckets of the time one plugin takes for one request, in seconds.
const PLUGIN_SECONDS: [f64; 6] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5];
/// Buckets of match ratios. The first one holds the misses.
const MATCH_RATIO: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// Buckets of actual less predicted shares. What lies between −0.05 and 0.05 is as good as equal: engines count in blocks of
/// their own.
const PREDICTION_ERROR: [f64; 10] = [-0.75, -0.5, -0.25, -0.1, -0.05, 0.05, 0.1, 0.25, 0.5, 0.75];

pub(crate) type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Handles of all families.
#[allow(
    missing_docs,
    reason = "the help texts in `register` say what each family is"
)]
pub struct Metrics {
    registry: Registry,
    pub requests: Family<RequestLabels, Counter>,
    pub request_duration: Histograms<DurationLabels>,
    pub prefill_duration: Histograms<PhaseLabels>,
    pub decode_duration: Histograms<PhaseLabels>,
    pub tokens: Family<TokenLabels, Counter>,
    pub plugin_duration: Histograms<PluginLabels>,
    pub active: Gauge,
    pub active_downstream: Family<ModelLabel, Gauge>,
    pub active_upstream: Family<UpstreamLabels, Gauge>,
    pub match_ratio: Histograms<ModelLabel>,
    pub predicted_ratio: Histograms<ModelLabel>,
    pub actual_ratio: Histograms<ModelLabel>,
    pub prediction_error: Histograms<ModelLabel>,
    pub evictions: Family<ModelLabel, Counter>,
    pub entries: Gauge,
    pub access_log_lost: Counter,
    pub record_lost: Counter,
    pub scrape_failures: Counter,
    pub malformed: Counter,
    pub config_source_up: Gauge,
    pub sticky_errors: Family<StageLabel, Counter>,
}

impl Metrics {
    /// All families, registered, without any series yet.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            prefill_duration: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            decode_duration: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            tokens: Family::default(),
            plugin_duration: Family::new_with_constructor(|| Histogram::new(PLUGIN_SECONDS)),
            active: Gauge::default(),
            active_downstream: Family::default(),
            active_upstream: Family::default(),
            match_ratio: Family::new_with_constructor(|| Histogram::new(MATCH_RATIO)),
            predicted_ratio: Family::new_with_constructor(|| Histogram::new(MATCH_RATIO)),
            actual_ratio: Family::new_with_constructor(|| Histogram::new(MATCH_RATIO)),
            prediction_error: Family::new_with_constructor(|| Histogram::new(PREDICTION_ERROR)),
            evictions: Family::default(),
            entries: Gauge::default(),
            access_log_lost: Counter::default(),
            record_lost: Counter::default(),
            scrape_failures: Counter::default(),
            malformed: Counter::default(),
            config_source_up: Gauge::default(),
            sticky_errors: Family::default(),
        };
        metrics.register();
        metrics.register_predictions();
        metrics
    }

    fn register(&mut self) {
        let r = self.registry.sub_registry_with_prefix("kthena_router");
        r.register(
            "requests",
            "Requests answered, by their end",
            self.requests.clone(),
        );
        r.register(
            "request_duration_seconds",
            "Time from receipt to the last byte",
            self.request_duration.clone(),
        );
        r.register(
            "request_prefill_duration_seconds",
            "Time of the prefill leg, where prefill and decode are split",
            self.prefill_duration.clone(),
        );
        r.register(
            "request_decode_duration_seconds",
            "Time of the decode leg to its last byte, where prefill and decode are split",
            self.decode_duration.clone(),
        );
        r.register(
            "tokens",
            "Tokens: input estimated from the prompt, output as engines report",
            self.tokens.clone(),
        );
        r.register(
            "scheduler_plugin_duration_seconds",
            "Time that one plugin took for one request",
            self.plugin_duration.clone(),
        );
        r.register(
            "active_requests",
            "Requests that clients wait for",
            self.active.clone(),
        );
        r.register(
            "active_downstream_requests",
            "Requests that clients wait for",
            self.active_downstream.clone(),
        );
        r.register(
            "active_upstream_requests",
            "Requests that pods work on",
            self.active_upstream.clone(),
        );
        r.register(
            "prefix_cache_match_ratio",
            "Share of the prompt's blocks that the best pod was sent before",
            self.match_ratio.clone(),
        );
        r.register(
            "prefix_cache_evictions",
            "Entries dropped because a pod's list was full",
            self.evictions.clone(),
        );
        r.register(
            "prefix_cache_entries",
            "Entries stored across all pods",
            self.entries.clone(),
        );
        r.register(
            "access_log_lost_lines",
            "Lines dropped because the log fell behind or could not be written",
            self.access_log_lost.clone(),
        );
        r.register(
            "record_lost_requests",
            "Requests left out of the recording because it fell behind or could not be written",
            self.record_lost.clone(),
        );
        r.register(
            "scrape_failures",
            "Scrapes of a pod's metrics that failed",
            self.scrape_failures.clone(),
        );
        r.register(
            "malformed_requests",
            "Requests refused because their head cannot be read",
            self.malformed.clone(),
        );
        r.register(
            "config_source_up",
            "Whether the source of models and pods could be read the last time",
            self.config_source_up.clone(),
        );
        r.register(
            "session_sticky_errors",
            "Requests scheduled without their session because its store did not answer",
            self.sticky_errors.clone(),
        );
        let version = ConstGauge::new(1i64);
        let labels = [("version".into(), env!("CARGO_PKG_VERSION").into())];
        r.sub_registry_with_labels(labels.into_iter()).register(
            "build_info",
            "The version that runs",
            version,
        );
        process::register(&mut self.registry);
    }

    fn register_predictions(&mut self) {
        let r = self.registry.sub_registry_with_prefix("kthena_router");
        r.register(
            "prefix_cache_predicted_ratio",
            "Share of the hashed prompt that the pod was sent before, where its engine reports cached tokens",
            self.predicted_ratio.clone(),
        );
        r.register(
            "prefix_cache_actual_ratio",
            "Share of the prompt that the engine reports as cached",
            self.actual_ratio.clone(),
        );
        r.register(
            "prefix_cache_prediction_error",
            "Actual less predicted share",
            self.prediction_error.clone(),
        );
    }

    /// The page in Prometheus' text format; `fleet` is the snapshot whose pods it shows.
    ///
    /// # Errors
    /// Never in practice: writing to a string does not fail.
    pub fn render(&self, fleet: Arc<Fleet>) -> Result<String, fmt::Error> {
        let mut page = String::with_capacity(16 << 10);
        prometheus_text::encode(&mut page, &self.registry)?;
        prometheus_text::encode(&mut page, &pods::registry(fleet))?;
        Ok(page)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// One more on a gauge until it is dropped.
#[derive(Debug)]
pub struct Raised(Gauge);

impl Raised {
    /// Raises the gauge by one.
    #[must_use]
    pub fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.dec();
    }
}
