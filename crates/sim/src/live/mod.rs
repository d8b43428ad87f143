//! The engine model behind vLLM's HTTP API, in real time.
//!
//! Endpoints: `/v1/chat/completions`, `/v1/completions`, `/v1/responses`, `/v1/messages` (whole and streamed),
//! `/v1/messages/count_tokens`, `/v1/models`, `/tokenize`, `/health`, `/ping`, `/version`, `/load`, `/metrics`,
//! `/kv_event_sources`, `/reset_prefix_cache`.
//!
//! As in the real engine, the head of a stream leaves at once and says nothing about acceptance; a client that goes away,
//! or half-closes, aborts its request; an idle connection is closed after [`LiveOptions::keep_alive`]; at shutdown
//! requests in flight end as a proper answer with the finish reason `abort`.
//!
//! Differs: broken HTTP gets a 400 with an empty body; there is no API key, no `/detokenize`, no `/v1/*` beyond the above.

mod api;
mod body;
mod core;
mod histogram;
mod idle;
mod metrics;
mod pd;
mod server;
mod service;
mod text;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use metrics::EngineKind;
pub use pd::{Disaggregation, PdConnector, PdRole};

use self::core::Core;
use crate::model::{Counters, EngineParams, InvalidParams, Load};

/// The version of vLLM whose answers are imitated.
pub const VERSION: &str = "0.32.0";

/// How a live engine behaves, beside the sizes and speeds of [`EngineParams`].
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Names the model is served under, at least one; answers and metrics use the first.
    pub model_names: Vec<String>,
    /// Decides the text of answers, and their length when a request sets none.
    pub seed: u64,
    /// Engine seconds per real second. Metrics are in engine seconds.
    pub time_scale: f64,
    /// An idle connection is closed after this long.
    pub keep_alive: Duration,
    /// Least and most tokens of an answer whose request sets no limit.
    pub answer_tokens: (usize, usize),
    /// Whether usage tells cached tokens (`--enable-prompt-tokens-details` of vLLM).
    pub prompt_tokens_details: bool,
    /// Whose metric names are shown.
    pub engine: EngineKind,
    /// Set when it does prefill or decode only.
    pub disaggregation: Option<Disaggregation>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            model_names: vec!["sim".to_owned()],
            seed: 0,
            time_scale: 1.0,
            keep_alive: Duration::from_secs(5),
            answer_tokens: (64, 256),
            prompt_tokens_details: true,
            engine: EngineKind::Vllm,
            disaggregation: None,
        }
    }
}

impl LiveOptions {
    fn first_name(&self) -> &str {
        self.model_names.first().map_or("", String::as_str)
    }
}

/// Why a live engine did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The parameters make no engine.
    #[error(transparent)]
    Params(#[from] InvalidParams),
    /// No model name, or a time scale that is not a positive number.
    #[error("{0}")]
    Options(&'static str),
    /// The address could not be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// Figures of a live engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// The present.
    pub load: Load,
    /// Sums since the start.
    pub counters: Counters,
}

/// A running engine. Dropping it ends it at once; [`LiveEngine::stop`] ends it in order.
#[derive(Debug)]
pub struct LiveEngine {
    address: SocketAddr,
    core: Arc<Core>,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
    driver: JoinHandle<()>,
}

impl LiveEngine {
    /// Starts an engine on `address`; port 0 takes a free one. Must be called within a tokio runtime with time and IO.
    ///
    /// # Errors
    /// When the options make no engine or the address cannot be bound.
    pub async fn start(
        params: EngineParams,
        options: LiveOptions,
        address: SocketAddr,
    ) -> Result<Self, StartError> {
        if options.model_names.is_empty() {
            return Err(StartError::Options(
                "an engine needs at least one model name",
            ));
        }
        if !(options.time_scale.is_finite() && options.time_scale > 0.0) {
            return Err(StartError::Options("time_scale must be a positive number"));
        }
        let (listener, address) = bind(address).await?;
        let rooms = options
            .disaggregation
            .filter(Disaggregation::has_bootstrap_server);
        let rooms = match rooms {
            Some(part) => Some(
                bind(SocketAddr::new(address.ip(), part.bootstrap_port))
                    .await?
                    .0,
            ),
            None => None,
        };
        let core = Core::new(params, options, address)?;
        let (stop, stopped) = watch::channel(false);
        let driver = tokio::spawn(Arc::clone(&core).drive());
        let serving = server::serve(Arc::clone(&core), listener, stopped.clone());
        let server = match rooms {
            None => tokio::spawn(serving),
            Some(rooms) => {
                let rooms = server::serve(Arc::clone(&core), rooms, stopped);
                tokio::spawn(async {
                    tokio::join!(serving, rooms);
                })
            }
        };
        Ok(Self {
            address,
            core,
            stop,
            server: Some(server),
            driver,
        })
    }

    /// Starts an engine with default options on a free loopback port.
    ///
    /// # Errors
    /// As [`LiveEngine::start`].
    pub async fn start_local(
        params: EngineParams,
        options: LiveOptions,
    ) -> Result<Self, StartError> {
        Self::start(params, options, (Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its figures now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            load: self.core.load(),
            counters: self.core.counters(),
        }
    }

    /// Empties the prefix cache; `false`, and nothing cleared, while requests run.
    pub fn reset_prefix_cache(&self) -> bool {
        self.core.reset_prefix_cache()
    }

    /// As SIGTERM does: requests in flight end with the finish reason `abort`, no connection is accepted any more.
    pub fn shutdown(&self) {
        self.core.abort_all();
        self.stop.send_replace(true);
    }

    /// [`LiveEngine::shutdown`], then waits until every connection has had its answer, at most `patience`.
    pub async fn stop(mut self, patience: Duration) {
        self.shutdown();
        if let Some(mut server) = self.server.take()
            && tokio::time::timeout(patience, &mut server).await.is_err()
        {
            server.abort();
        }
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound
        .await
        .map_err(|source| StartError::Bind { address, source })
}

impl Drop for LiveEngine {
    fn drop(&mut self) {
        self.driver.abort();
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}
