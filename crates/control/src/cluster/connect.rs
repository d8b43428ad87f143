//! The way to the API server.

use crate::names;
use http::Uri;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use std::time::Duration;
use thiserror::Error;
use tower::limit::RateLimitLayer;

/// Longest wait for a connection. The API server is near.
const CONNECT: Duration = Duration::from_secs(5);

/// Requests in a second, unless set: a list of 10,000 pods is 20 requests.
const QPS: f64 = 20.0;

/// What the cluster source is asked to do.
#[derive(Clone, Debug, Default)]
pub struct ClusterOptions {
    /// The only namespace to look at; `None` looks at all.
    pub namespace: Option<String>,
    /// Whether statuses are written.
    pub statuses: bool,
    /// Requests in a second on average; 20 unless above 0.
    pub qps: f64,
    /// Requests at once at most; twice as many as in a second unless above 0.
    pub burst: u64,
}

/// Why there is no way to the API server.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The namespace has no valid name.
    #[error("--namespace: {0}")]
    Namespace(String),
    /// There are neither credentials of a pod nor a kubeconfig.
    #[error("no credentials for a cluster: {0}")]
    Credentials(#[source] kube::config::InferConfigError),
    /// The credentials or the addresses cannot be used.
    #[error("the credentials for the cluster cannot be used: {0}")]
    Client(#[source] kube::Error),
}

impl ClusterOptions {
    /// A client and the server's address, with the credentials that a kubeconfig or a pod's service account give.
    pub(crate) async fn connect(&self) -> Result<(Client, Uri), ConnectError> {
        let config = Config::infer().await.map_err(ConnectError::Credentials)?;
        self.client(config)
    }

    /// A client for a server that asks for no credentials.
    pub(super) fn at(&self, server: Uri) -> Result<(Client, Uri), ConnectError> {
        self.client(Config::new(server))
    }

    fn client(&self, mut config: Config) -> Result<(Client, Uri), ConnectError> {
        if let Some(namespace) = &self.namespace {
            names::check_namespace(namespace).map_err(ConnectError::Namespace)?;
        }
        config.connect_timeout = Some(CONNECT);
        // Whoever asks has pauses of its own between tries, and wants to know of each failure.
        config.default_retry = false;
        let server = config.cluster_url.clone();
        let (burst, window) = self.rate();
        let client = ClientBuilder::try_from(config)
            .map_err(ConnectError::Client)?
            .with_layer(&RateLimitLayer::new(burst, window))
            .build();
        Ok((client, server))
    }

    /// Requests in a window of time.
    fn rate(&self) -> (u64, Duration) {
        let qps = if self.qps > 0.0 { self.qps } else { QPS };
        let burst = match self.burst {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a float saturates, and it is positive"
            )]
            0 => (qps * 2.0).ceil() as u64,
            burst => burst,
        };
        #[allow(
            clippy::cast_precision_loss,
            reason = "as many requests as a float counts exactly are no limit at all"
        )]
        let window = Duration::try_from_secs_f64(burst as f64 / qps);
        (burst, window.unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_qps_on_average_and_burst_at_once() {
        let rate = |qps, burst| {
            let options = ClusterOptions {
                qps,
                burst,
                ..ClusterOptions::default()
            };
            options.rate()
        };
        assert_eq!(rate(0.0, 0), (40, Duration::from_secs(2)));
        assert_eq!(rate(5.0, 10), (10, Duration::from_secs(2)));
        assert_eq!(rate(0.5, 0), (1, Duration::from_secs(2)));
        assert_eq!(rate(0.0, 100), (100, Duration::from_secs(5)));
        assert_eq!(rate(-1.0, 20), (20, Duration::from_secs(1)));
    }
}
