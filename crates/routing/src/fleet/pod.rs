//! One pod that runs an inference engine.

use super::{Load, ObjectName};
use prefix_index::PodId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Which engine a pod runs; decides the names of its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
}

impl Engine {
    /// The name in `spec.inferenceEngine`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
        }
    }
}

/// Where a pod listens. Always plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// IP address or host name, without brackets.
    pub host: Box<str>,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One incarnation of a pod as a snapshot knows it: its facts, and its live load figures.
#[derive(Debug)]
pub struct Pod {
    /// Unique for the life of the process.
    pub id: PodId,
    /// `namespace/name`; with the file source the name is `<ModelServer>:<endpoint>`.
    pub name: ObjectName,
    /// In a cluster the uid, which tells it from an earlier pod of its name.
    pub uid: Option<Box<str>>,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// What it runs.
    pub engine: Engine,
    /// Its labels, which may change: the pod of a later snapshot then has other labels, but the same id and load.
    pub labels: BTreeMap<String, String>,
    /// Live figures, of the pod in all snapshots.
    pub load: Arc<Load>,
}

impl Pod {
    /// Counts one more request in flight, until the guard is dropped.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> InFlight {
        self.load.in_flight.fetch_add(1, Relaxed);
        InFlight {
            pod: Arc::clone(self),
            counted: true,
        }
    }
}

/// One request in flight on a pod. Dropping it takes the count back, on every path.
#[derive(Debug)]
pub struct InFlight {
    pod: Arc<Pod>,
    counted: bool,
}

impl InFlight {
    /// The pod that has the request.
    #[must_use]
    pub fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    /// The pod is done with the request, whose answer may be looked at further.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.pod.load.in_flight.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hands out pod ids, each once in the life of the process.
#[derive(Debug, Default)]
pub struct PodIds(AtomicU32);

impl PodIds {
    /// The next id.
    pub fn next(&self) -> PodId {
        PodId(self.0.fetch_add(1, Relaxed))
    }
}
