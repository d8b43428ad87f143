//! The scrapes of one pod.

use super::latency::Latency;
use super::{Page, Sample};
use crate::app::App;
use crate::upstream::{Head, Payload, PodPool, UpstreamBody};
use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use routing::fleet::{Gauges, Pod};
use std::sync::Arc;
use std::time::Duration;

/// Longest scrape, as in the original.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(5);
/// A reading older than this many intervals is no longer believed.
const STALE_AFTER: u32 = 10;
/// Longest page, in bytes; a real one has 50 to 100 KiB.
const MAX_PAGE: usize = 16 << 20;
/// Longest model list, in bytes.
const MAX_LIST: usize = 1 << 20;

/// What is kept about one pod from scrape to scrape.
pub(super) struct PodScraper {
    app: Arc<App>,
    pod: Arc<Pod>,
    metrics: Head,
    models: Head,
    ttft: Latency,
    tpot: Latency,
    failing: bool,
}

impl PodScraper {
    pub(super) fn new(app: Arc<App>, pod: Arc<Pod>) -> Self {
        let head = |path| {
            let mut headers = HeaderMap::new();
            if let Ok(host) = HeaderValue::from_str(&pod.endpoint.to_string()) {
                headers.insert(HOST, host);
            }
            headers.insert(
                USER_AGENT,
                HeaderValue::from_static(concat!("kthena-router/", env!("CARGO_PKG_VERSION"))),
            );
            Head {
                method: Method::GET,
                uri: Uri::from_static(path),
                headers,
                once: false,
            }
        };
        Self {
            metrics: head("/metrics"),
            models: head("/v1/models"),
            app,
            pod,
            ttft: Latency::default(),
            tpot: Latency::default(),
            failing: false,
        }
    }

    /// One scrape, and what follows from it.
    pub(super) async fn scrape(&mut self) {
        let stale = self.app.settings.scrape_interval * STALE_AFTER;
        // Not longer than a reading may live, so that a pod whose page hangs becomes unknown in time.
        let limit = SCRAPE_TIMEOUT.min(stale);
        match tokio::time::timeout(limit, self.read())
            .await
            .unwrap_or_else(|_| Err("timed out".into()))
        {
            Ok(gauges) => {
                self.pod.load.publish(&gauges, self.app.uptime_ms());
                if std::mem::take(&mut self.failing) {
                    tracing::info!(pod = %self.pod.name, "metrics can be read again");
                }
            }
            Err(why) => {
                self.app.metrics.scrape_failures.inc();
                let age = self
                    .pod
                    .load
                    .scraped_at_ms()
                    .map(|at| self.app.uptime_ms().saturating_sub(at));
                if age.is_none_or(|age| u128::from(age) >= stale.as_millis()) {
                    self.pod.load.expire();
                }
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(pod = %self.pod.name, "cannot read metrics: {why}");
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Gauges, String> {
        let pool = self.app.upstreams.pool(&self.pod);
        let mut page = Page::new(self.pod.engine);
        each_piece(get(&pool, &self.metrics).await?, MAX_PAGE, |piece| {
            page.push(piece)
        })
        .await?;
        let sample = page
            .finish()
            .ok_or("the page holds none of the engine's metrics")?;
        if let Ok(names) = models(&pool, &self.models).await {
            self.pod.load.set_models(names);
        }
        Ok(self.gauges(&sample))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the values are finite and not negative; the cast saturates"
    )]
    fn gauges(&mut self, sample: &Sample) -> Gauges {
        Gauges {
            waiting: sample.waiting as u32,
            running: sample.running as u32,
            kv_usage: sample.usage.min(1.0) as f32,
            ttft: self.ttft.update(sample.ttft) as f32,
            tpot: self.tpot.update(sample.tpot) as f32,
        }
    }
}

async fn get(pool: &Arc<PodPool>, head: &Head) -> Result<UpstreamBody, String> {
    let response: Response<UpstreamBody> = pool
        .send(head, &Payload::default(), None)
        .await
        .map_err(|e| e.to_string())?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        other => Err(format!("{} answered {other}", head.uri)),
    }
}

async fn each_piece(
    mut body: UpstreamBody,
    limit: usize,
    mut take: impl FnMut(&Bytes),
) -> Result<(), String> {
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|e| e.to_string())?.into_data() {
            size += data.len();
            if size > limit {
                return Err(format!("longer than {limit} bytes"));
            }
            take(&data);
        }
    }
    Ok(())
}

async fn models(pool: &Arc<PodPool>, head: &Head) -> Result<Vec<Box<str>>, String> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<Model>,
    }
    #[derive(serde::Deserialize)]
    struct Model {
        id: Box<str>,
    }
    let mut text = Vec::new();
    each_piece(get(pool, head).await?, MAX_LIST, |piece| {
        text.extend_from_slice(piece)
    })
    .await?;
    let list: List = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    Ok(list.data.into_iter().map(|m| m.id).collect())
}
