//! The way to the pods: one pool of HTTP/1.1 connections per pod, driven by the request that uses them.
//!
//! A connection has no task of its own. The request that holds it polls it, so nothing is handed between tasks, and
//! dropping the request closes the socket at once, which is how an engine learns that nobody waits any more.

mod body;
mod conn;
mod error;
mod heard;
mod payload;
mod pool;

pub use body::{BodyError, UpstreamBody};
pub use error::{SendError, Stage};
pub use payload::Payload;
pub use pool::{Head, PodPool};

use arc_swap::ArcSwap;
use prefix_index::PodId;
use routing::fleet::Fleet;
use std::collections::HashMap;
use std::sync::Arc;

/// The pools of all pods of the current fleet.
#[derive(Debug, Default)]
pub struct Upstreams {
    pools: ArcSwap<HashMap<PodId, Arc<PodPool>>>,
}

impl Upstreams {
    /// Makes the pools those of this fleet: pools of pods that stay are kept, with their idle connections.
    pub fn adopt(&self, fleet: &Fleet) {
        let old = self.pools.load();
        let new = fleet
            .pods()
            .into_iter()
            .map(|(id, pod)| {
                (
                    id,
                    old.get(&id)
                        .cloned()
                        .unwrap_or_else(|| Arc::new(PodPool::new(pod))),
                )
            })
            .collect();
        self.pools.store(Arc::new(new));
    }

    /// The pool of a pod. A pod that left the fleet a moment ago gets a pool of its own for this one request.
    #[must_use]
    pub fn pool(&self, pod: &Arc<routing::fleet::Pod>) -> Arc<PodPool> {
        self.pools
            .load()
            .get(&pod.id)
            .cloned()
            .unwrap_or_else(|| Arc::new(PodPool::new(pod)))
    }

    /// Closes idle connections that the other side has closed.
    pub fn sweep(&self) {
        for pool in self.pools.load().values() {
            pool.sweep();
        }
    }
}
