//! An engine's own counters, read from its metrics page.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;

use super::client::{Client, Failure};

/// Sums of an engine, as its metrics page tells them (vLLM's or SGLang's names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineSums {
    /// Requests finished.
    pub requests: u64,
    /// Prompt tokens looked up in the prefix cache.
    pub prefix_queries: u64,
    /// Prompt tokens found there.
    pub prefix_hits: u64,
}

impl EngineSums {
    /// Reads the text of a metrics page.
    #[must_use]
    pub fn parse(page: &str) -> Self {
        let mut sums = Self::default();
        for line in page.lines() {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let sum = match name {
                "vllm:request_success_total" | "sglang:num_requests_total" => &mut sums.requests,
                "vllm:prefix_cache_queries_total" | "sglang:prompt_tokens_total" => {
                    &mut sums.prefix_queries
                }
                "vllm:prefix_cache_hits_total" => &mut sums.prefix_hits,
                _ => continue,
            };
            let value = line
                .rsplit(' ')
                .next()
                .and_then(|value| value.parse::<f64>().ok());
            *sum += value.unwrap_or(0.0) as u64;
        }
        sums
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(before.requests),
            prefix_queries: self.prefix_queries.saturating_sub(before.prefix_queries),
            prefix_hits: self.prefix_hits.saturating_sub(before.prefix_hits),
        }
    }
}

/// Reads the counters of the engine at `host:port`.
pub(super) async fn scrape(authority: &str) -> Result<EngineSums, Failure> {
    let response = Client::new(authority, "scrape".to_owned())
        .send(Method::GET, "/metrics", Bytes::new())
        .await?;
    let page = response.into_body().collect().await?.to_bytes();
    Ok(EngineSums::parse(&String::from_utf8_lossy(&page)))
}
