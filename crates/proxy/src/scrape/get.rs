//! The GET of one of a pod's own pages, bounded in time and in size.

use crate::app::App;
use crate::upstream::{Head, Payload};
use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::BodyExt;
use routing::fleet::Pod;
use std::sync::Arc;
use std::time::Duration;

/// Longest scrape, as in the original.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(5);
/// A reading older than this many intervals is no longer believed.
const STALE_AFTER: u32 = 10;

/// Age from which on a reading is no longer believed.
pub(super) fn stale_after(app: &App) -> Duration {
    app.settings.scrape_interval * STALE_AFTER
}

/// A page of a pod.
pub(super) struct Get {
    app: Arc<App>,
    pod: Arc<Pod>,
    head: Head,
}

impl Get {
    pub(super) fn new(app: &Arc<App>, pod: &Arc<Pod>, path: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        if let Ok(host) = HeaderValue::from_str(&pod.endpoint.to_string()) {
            headers.insert(HOST, host);
        }
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("kthena-router/", env!("CARGO_PKG_VERSION"))),
        );
        Self {
            app: Arc::clone(app),
            pod: Arc::clone(pod),
            head: Head {
                method: Method::GET,
                uri: Uri::from_static(path),
                headers,
                once: false,
            },
        }
    }

    /// Reads the page, `longest` bytes at most; `take` gets its pieces.
    pub(super) async fn read(
        &self,
        longest: usize,
        take: impl FnMut(&Bytes),
    ) -> Result<(), String> {
        // Not longer than a reading may live, so that a pod whose page hangs becomes unknown in time.
        let limit = SCRAPE_TIMEOUT.min(stale_after(&self.app));
        tokio::time::timeout(limit, self.pieces(longest, take))
            .await
            .unwrap_or_else(|_| Err("timed out".into()))
    }

    async fn pieces(&self, longest: usize, mut take: impl FnMut(&Bytes)) -> Result<(), String> {
        let pool = self.app.upstreams.pool(&self.pod);
        let response = pool
            .send(&self.head, &Payload::default(), None)
            .await
            .map_err(|e| e.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("{} answered {}", self.head.uri, response.status()));
        }
        let mut body = response.into_body();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame.map_err(|e| e.to_string())?.into_data() {
                size += data.len();
                if size > longest {
                    return Err(format!("longer than {longest} bytes"));
                }
                take(&data);
            }
        }
        Ok(())
    }
}
