//! The ways of the KV cache from prefill to decode.

use crate::fleet::Engine;

/// How the KV cache gets from a prefill pod to a decode pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Connector {
    /// The engines share a store; requests need not say anything.
    Http,
    /// As `Http`, by LMCache.
    LmCache,
    /// The prefill pod answers with `kv_transfer_params`, by which the decode pod fetches the cache over NIXL.
    Nixl,
    /// As `Nixl`, over Mooncake.
    Mooncake,
    /// Both pods are asked at once and meet in a room of the prefill pod's bootstrap server.
    Sglang,
}

/// When the decode pod is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// After the prefill pod has answered.
    Sequential,
    /// Together with the prefill pod.
    Concurrent,
}

impl Connector {
    /// The connector of a server that names none: that of its engine.
    #[must_use]
    pub fn of_engine(engine: Engine) -> Self {
        match engine {
            Engine::Vllm => Self::Http,
            Engine::Sglang => Self::Sglang,
        }
    }

    /// When the decode pod is asked.
    #[must_use]
    pub fn order(self) -> Order {
        match self {
            Self::Sglang => Order::Concurrent,
            Self::Http | Self::LmCache | Self::Nixl | Self::Mooncake => Order::Sequential,
        }
    }

    /// Whether the prefill pod's answer holds `kv_transfer_params` for the decode pod.
    #[must_use]
    pub fn hands_over_params(self) -> bool {
        matches!(self, Self::Nixl | Self::Mooncake)
    }
}
