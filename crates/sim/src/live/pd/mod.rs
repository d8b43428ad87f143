//! An engine that does prefill or decode only, and hands the KV cache over as vLLM's NIXL connector or SGLang do.
//!
//! What is handed over is the word that a prompt was computed: a prefill engine keeps a digest of the prompt under a key,
//! and the decode engine comes to claim it over HTTP, at the address that it was told. A decode whose prefill was not
//! done, or was done for another prompt, is refused, so that a router that tells one leg something wrong is seen.
//!
//! - NIXL: a prefill request says `do_remote_decode`; its answer has `kv_transfer_params` with the key, which a decode
//!   request brings back unchanged. The key needs all of 64 bits: a router that reads it as a floating-point number loses it.
//! - SGLang: both requests carry a `bootstrap_room`. The prefill engine answers only when the decode engine has come to its
//!   bootstrap port, so a router that asks one after the other waits for ever.
//! - HTTP: nothing is said. A prefill engine still refuses what is no prefill.

mod claim;
mod leg;
mod transfers;

pub(super) use claim::{CLAIM_PATH, serve_claim};
pub(super) use leg::Leg;
pub(super) use transfers::Transfers;

/// What an engine does of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdRole {
    /// Computes prompts.
    Prefill,
    /// Generates answers.
    Decode,
}

/// How the cache is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdConnector {
    /// By a shared store that requests say nothing about.
    Http,
    /// As vLLM with `NixlConnector`.
    Nixl,
    /// As SGLang.
    Sglang,
}

/// An engine's part in prefill/decode disaggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disaggregation {
    /// What it does.
    pub role: PdRole,
    /// How the cache is handed over.
    pub connector: PdConnector,
    /// SGLang's `--disaggregation-bootstrap-port`: where a prefill engine waits for decode engines, and where a decode
    /// engine goes when a request names no other port.
    pub bootstrap_port: u16,
}

impl Disaggregation {
    /// With SGLang's default port.
    #[must_use]
    pub fn new(role: PdRole, connector: PdConnector) -> Self {
        Self {
            role,
            connector,
            bootstrap_port: 8998,
        }
    }

    /// Whether decode engines come to the bootstrap port.
    pub(super) fn has_bootstrap_server(&self) -> bool {
        (self.role, self.connector) == (PdRole::Prefill, PdConnector::Sglang)
    }
}

/// Reads the value of `--role`.
impl std::str::FromStr for PdRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "prefill" => Ok(Self::Prefill),
            "decode" => Ok(Self::Decode),
            _ => Err(format!("unknown role {text:?}: prefill or decode")),
        }
    }
}

/// Reads the value of `--kv-connector`.
impl std::str::FromStr for PdConnector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "http" => Ok(Self::Http),
            "nixl" => Ok(Self::Nixl),
            "sglang" => Ok(Self::Sglang),
            _ => Err(format!("unknown connector {text:?}: http, nixl or sglang")),
        }
    }
}
