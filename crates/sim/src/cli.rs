//! The options of `kthena-router sim-engine`, and its run.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use crate::{
    live::{EngineKind, LiveEngine, LiveOptions, StartError},
    model::EngineParams,
};

/// How long an engine waits for its connections at the end. The real one is gone within 0.2 s.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Everything that can be set; the command line fills it.
#[derive(Clone, Debug)]
pub struct SimEngineOptions {
    /// Address to listen on. Loopback by default: an engine without authentication is not for others.
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Sizes and speeds.
    pub params: EngineParams,
    /// Behaviour.
    pub live: LiveOptions,
}

impl Default for SimEngineOptions {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8000,
            params: EngineParams::datacentre_7b(),
            live: LiveOptions::default(),
        }
    }
}

/// Reads the value of `--engine`: `vllm` or `sglang`.
impl std::str::FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "vllm" => Ok(Self::Vllm),
            "sglang" => Ok(Self::Sglang),
            _ => Err(format!("unknown engine {text:?}: vllm or sglang")),
        }
    }
}

/// Runs an engine until `shutdown` completes; tells `started` the address it listens on.
///
/// # Errors
/// When the options make no engine or the address cannot be bound.
pub async fn run(
    options: SimEngineOptions,
    shutdown: impl Future<Output = ()>,
    started: impl FnOnce(SocketAddr),
) -> Result<(), StartError> {
    let address = SocketAddr::new(options.host, options.port);
    let engine = LiveEngine::start(options.params, options.live, address).await?;
    started(engine.address());
    shutdown.await;
    engine.stop(LAST_WORDS).await;
    Ok(())
}
