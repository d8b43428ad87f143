//! The scrapes of one pod's metrics.

use super::get::{Get, stale_after};
use super::growth::Growth;
use super::latency::Latency;
use super::{Page, Sample};
use crate::app::App;
use routing::fleet::{CacheTokens, Gauges, Pod};
use std::sync::Arc;

/// Longest page, in bytes; a real one has 50 to 100 KiB.
const MAX_PAGE: usize = 16 << 20;

/// What is kept about one pod from scrape to scrape.
pub(super) struct PodScraper {
    app: Arc<App>,
    pod: Arc<Pod>,
    page: Get,
    ttft: Latency,
    tpot: Latency,
    cache_queried: Growth,
    cache_hit: Growth,
    failing: bool,
}

impl PodScraper {
    pub(super) fn new(app: &Arc<App>, pod: &Arc<Pod>) -> Self {
        Self {
            page: Get::new(app, pod, "/metrics"),
            app: Arc::clone(app),
            pod: Arc::clone(pod),
            ttft: Latency::default(),
            tpot: Latency::default(),
            cache_queried: Growth::default(),
            cache_hit: Growth::default(),
            failing: false,
        }
    }

    /// One scrape, and what follows from it.
    pub(super) async fn scrape(&mut self) {
        match self.read().await {
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
                let stale = stale_after(&self.app).as_millis();
                if age.is_none_or(|age| u128::from(age) >= stale) {
                    self.pod.load.expire();
                }
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(pod = %self.pod.name, "cannot read metrics: {why}");
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Gauges, String> {
        let mut page = Page::new(self.pod.engine);
        self.page.read(MAX_PAGE, |piece| page.push(piece)).await?;
        let sample = page
            .finish()
            .ok_or("the page holds none of the engine's metrics")?;
        if let Some(hit) = sample.cache_hit {
            self.pod.load.set_cache_tokens(CacheTokens {
                queried: self.cache_queried.update(sample.cache_queried),
                hit: self.cache_hit.update(hit),
            });
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
