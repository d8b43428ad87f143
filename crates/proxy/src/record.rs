//! What is written down about one request, from its receipt to its end, whatever the end is.

mod leaves;
mod request_id;

use crate::access_log::{Entry, Failure, Timings};
use crate::app::App;
use crate::error::Refusal;
use crate::insight::Trail;
use crate::lifecycle::Phase;
use crate::metrics::{
    Binding, DurationLabels, ModelLabel, Raised, RequestLabels, Status, Text, TokenLabels,
    UpstreamLabels,
};
use crate::relay::Usage;
use http::request::Parts;
use http::{HeaderValue, Version};
use routing::fleet::Pod;
use routing::prompt::Prompt;
use routing::request::Api;
use routing::route::Routed;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// Status in log and metrics of a request whose client left before the response. Nobody ever receives it.
const CLIENT_CLOSED_REQUEST: u16 = 499;
/// The same of a request without a response when the router ended.
const SHUT_DOWN: u16 = 503;

/// One request's record. Dropping it writes metrics and the access log, so that no path can forget to.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) app: Arc<App>,
    pub(crate) api: Api,
    pub(crate) trail: Trail,
    started: Instant,
    timestamp: jiff::Timestamp,
    method: http::Method,
    path: String,
    protocol: Version,
    request_id: HeaderValue,
    model: String,
    model_label: Text,
    binding: Option<Binding>,
    pod: Option<Arc<Pod>>,
    /// Who did the prefill, if that was another pod.
    prefill: Option<Arc<Pod>>,
    status: u16,
    failure: Option<(Failure, &'static str)>,
    origin: &'static str,
    upstream_status: u16,
    attempts: u32,
    input_tokens: u64,
    output_tokens: u64,
    parsed: Option<Instant>,
    upstream_from: Option<Instant>,
    upstream_to: Option<Instant>,
    downstream_gauge: Option<Raised>,
    upstream_gauge: Option<Raised>,
    _active: Raised,
}

impl Record {
    /// Starts the record of a request; gives it an id if it has none, or one that cannot be logged as it is.
    pub(crate) fn start(app: Arc<App>, api: Api, parts: &mut Parts) -> Self {
        let request_id = request_id::take(&mut parts.headers);
        let told = app.settings.decision_header.wanted(&mut parts.headers);
        Self {
            _active: Raised::new(app.metrics.active.clone()),
            api,
            trail: Trail::new(told),
            started: Instant::now(),
            timestamp: jiff::Timestamp::now(),
            method: parts.method.clone(),
            path: shortened(parts.uri.path()).to_owned(),
            protocol: parts.version,
            request_id,
            model: String::new(),
            model_label: UNKNOWN_MODEL.clone(),
            binding: None,
            pod: None,
            prefill: None,
            status: 0,
            failure: None,
            origin: "",
            upstream_status: 0,
            attempts: 0,
            input_tokens: 0,
            output_tokens: 0,
            parsed: None,
            upstream_from: None,
            upstream_to: None,
            downstream_gauge: None,
            upstream_gauge: None,
            app,
        }
    }

    pub(crate) fn request_id(&self) -> &HeaderValue {
        &self.request_id
    }

    pub(crate) fn model_label(&self) -> &Text {
        &self.model_label
    }

    /// The body was read: which model it asks for, and how long its prompt is. `known` is the fleet's own name.
    pub(crate) fn parsed(&mut self, model: &str, known: Option<&Arc<str>>, input_tokens: u64) {
        self.parsed = Some(Instant::now());
        self.model = shortened(model).to_owned();
        if let Some(known) = known {
            self.model_label = Text::from(Arc::clone(known));
        }
        self.input_tokens = input_tokens;
        let label = ModelLabel {
            model: self.model_label.clone(),
        };
        let gauge = self
            .app
            .metrics
            .active_downstream
            .get_or_create(&label)
            .clone();
        self.downstream_gauge = Some(Raised::new(gauge));
    }

    /// The request has found its server: it may be one of those that are looked at closely.
    pub(crate) fn sample(&mut self, prompt: &Prompt<'_>) {
        // 136 years of seconds.
        let second = self.app.uptime().as_secs() as u32;
        self.trail.sampled = self.app.insight.sampler.admits(second);
        self.trail.prompt_bytes = prompt.spelled_bytes();
        if self.trail.sampled {
            self.app.insight.prompts.keep(&self.model_label, prompt);
        }
    }

    /// Why the pod that was asked last was chosen, if the client is to be told.
    pub(crate) fn told(&self) -> Option<HeaderValue> {
        let pod = self.pod.as_ref()?;
        self.trail.told(pod, self.prefill.as_deref(), self.attempts)
    }

    /// The scheduler has chosen; from here on a pod is asked.
    pub(crate) fn bound(&mut self, routed: &Routed<'_>) {
        let upstream_model = routed
            .upstream_model
            .map_or_else(|| Text::from(Arc::clone(routed.model)), Text::from);
        let binding = Binding {
            model_route: Text::from(Arc::clone(routed.route.name.shared())),
            backend_type: "model_server",
            backend_name: Text::from(Arc::clone(routed.server.name.shared())),
            upstream_model,
        };
        let labels = UpstreamLabels {
            model_server: binding.backend_name.clone(),
            binding: binding.clone(),
        };
        let gauge = self
            .app
            .metrics
            .active_upstream
            .get_or_create(&labels)
            .clone();
        self.upstream_gauge = Some(Raised::new(gauge));
        self.binding = Some(binding);
        self.upstream_from = Some(Instant::now());
    }

    /// One more pod is asked.
    pub(crate) fn attempt(&mut self, pod: &Arc<Pod>) {
        self.attempts += 1;
        self.pod = Some(Arc::clone(pod));
    }

    /// One more pair of pods is asked.
    pub(crate) fn attempt_pair(&mut self, prefill: &Arc<Pod>, decode: &Arc<Pod>) {
        self.attempt(decode);
        self.prefill = Some(Arc::clone(prefill));
    }

    /// The pod of the last attempt, and the prefill pod if it was a pair.
    pub(crate) fn asked(&self) -> Option<(&Arc<Pod>, Option<&Arc<Pod>>)> {
        Some((self.pod.as_ref()?, self.prefill.as_ref()))
    }

    /// The pod whose response goes to the client, after others were tried, and the prefill pod if it was a pair.
    pub(crate) fn served_by(&mut self, pod: &Arc<Pod>, prefill: Option<&Arc<Pod>>) {
        self.pod = Some(Arc::clone(pod));
        self.prefill = prefill.cloned();
    }

    /// A pod's status was seen.
    pub(crate) fn upstream_status(&mut self, status: u16) {
        self.upstream_status = status;
    }

    /// The response head goes to the client.
    pub(crate) fn responding(&mut self, status: u16) {
        self.status = status;
        if status >= 400 && self.failure.is_none() {
            self.fail(
                "upstream_response",
                format!("pod returned HTTP {status}"),
                "request_failed",
                "upstream",
            );
        }
    }

    /// The router answers by itself.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        if matches!(refusal, Refusal::ClientLeft) {
            return self.client_left();
        }
        self.status = refusal.status().as_u16();
        self.upstream_ended();
        self.fail(
            refusal.kind(),
            refusal.log_text(),
            refusal.label(),
            "router",
        );
    }

    /// The upstream response ended, well or not.
    pub(crate) fn upstream_ended(&mut self) {
        if self.upstream_from.is_some() && self.upstream_to.is_none() {
            self.upstream_to = Some(Instant::now());
        }
        self.upstream_gauge = None;
    }

    /// What the engine reports of tokens.
    pub(crate) fn reported(&mut self, usage: Option<Usage>) {
        self.output_tokens = usage.map_or(0, |usage| usage.completion);
        self.trail.reported(usage);
    }

    /// The response failed after its head was sent.
    pub(crate) fn broke_off(&mut self, why: String) {
        self.upstream_ended();
        self.fail("proxy", why, "proxy", "upstream");
    }

    fn fail(
        &mut self,
        kind: &'static str,
        mut message: String,
        label: &'static str,
        origin: &'static str,
    ) {
        message.truncate(shortened(&message).len());
        self.failure = Some((
            Failure {
                r#type: kind,
                message,
            },
            label,
        ));
        self.origin = origin;
    }

    /// The client left: before the response, or in the middle of it. Or the router ends, and cuts it off.
    pub(crate) fn client_left(&mut self) {
        let cut = self.app.lifecycle.phase() == Phase::Cutting;
        if self.status == 0 {
            self.status = if cut {
                SHUT_DOWN
            } else {
                CLIENT_CLOSED_REQUEST
            };
        }
        self.upstream_ended();
        if self.failure.is_some() {
            return;
        }
        if cut {
            let why = "the router has ended before the request".into();
            self.fail("shutdown", why, "shutdown", "router");
        } else {
            let why = "the client closed the connection".into();
            self.fail("client_disconnected", why, "client_disconnected", "client");
        }
    }

    fn count(&self) {
        let metrics = &self.app.metrics;
        let (model, path) = (self.model_label.clone(), self.api.label());
        let binding = self.binding.clone().unwrap_or_else(Binding::none);
        let status_code = Status(self.status);
        let error_type = match &self.failure {
            Some((_, label)) => label,
            None => "successful_request",
        };
        let tokens = |token_type, count: u64| {
            if count > 0 {
                let labels = TokenLabels {
                    model: model.clone(),
                    path,
                    token_type,
                    binding: binding.clone(),
                };
                metrics.tokens.get_or_create(&labels).inc_by(count);
            }
        };
        tokens("input", self.input_tokens);
        tokens("output", self.output_tokens);
        let labels = DurationLabels {
            model: model.clone(),
            path,
            status_code,
            binding: binding.clone(),
        };
        metrics
            .request_duration
            .get_or_create(&labels)
            .observe(self.started.elapsed().as_secs_f64());
        metrics
            .requests
            .get_or_create(&RequestLabels {
                model,
                path,
                status_code,
                error_type,
                binding,
            })
            .inc();
    }

    fn log(&self) {
        let Some((format, writer)) = &self.app.access_log else {
            return;
        };
        let binding = self.binding.as_ref();
        let text = |pick: fn(&Binding) -> &Text| binding.map_or("", |b| pick(b).as_str());
        let now = Instant::now();
        let parsed = self.parsed.unwrap_or(now);
        let upstream = self
            .upstream_from
            .map(|from| self.upstream_to.unwrap_or(now) - from)
            .unwrap_or_default();
        let entry = Entry {
            timestamp: self.timestamp,
            method: shortened(self.method.as_str()),
            path: &self.path,
            protocol: protocol(self.protocol),
            status_code: self.status,
            error: self.failure.as_ref().map(|(failure, _)| failure),
            model_name: &self.model,
            model_route: text(|b| &b.model_route),
            model_server: text(|b| &b.backend_name),
            selected_pod: self.pod.as_ref().map_or("", |p| p.name.name()),
            prefill_pod: self.prefill.as_ref().map_or("", |p| p.name.name()),
            request_id: self.request_id.to_str().unwrap_or_default(),
            backend_type: binding.map_or("", |b| b.backend_type),
            backend_name: text(|b| &b.backend_name),
            upstream_model: text(|b| &b.upstream_model),
            upstream_status_code: self.upstream_status,
            upstream_attempts: self.attempts,
            error_origin: self.origin,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            timings: Timings {
                total: now - self.started,
                request: parsed - self.started,
                upstream,
            },
        };
        writer.line(|text| entry.write(*format, text));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.status == 0 {
            self.client_left();
        }
        self.upstream_ended();
        self.count();
        self.leave_decision();
        self.log();
        self.leave_recording();
    }
}

/// Label of every model that no route knows.
static UNKNOWN_MODEL: LazyLock<Text> = LazyLock::new(|| Text::from("unknown"));

/// Longest method, path, model name or message in a log line, in bytes. Clients choose them; real ones are far shorter.
const MAX_LOGGED: usize = 512;

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_LOGGED)]
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_fill_the_log() {
        assert_eq!(shortened("qwen"), "qwen");
        assert_eq!(shortened(&"x".repeat(1 << 20)).len(), MAX_LOGGED);
        assert_eq!(shortened(&"ö".repeat(1000)).len(), MAX_LOGGED);
    }
}
