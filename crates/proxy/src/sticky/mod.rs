//! Session sticky: requests of one session go to the pod that its first request was given to.
//!
//! A `Session` is what one request knows of it. Where bindings are kept is behind [`Sessions`]: in memory, bounded, or
//! in a Redis that several routers share. A store that does not answer costs a request 50 ms at most and its binding,
//! never its answer.

mod binding;
mod memory;
mod redis;
mod session;
mod shard;

pub use binding::{Binding, Committed, SessionKey};
pub use memory::{MAX_SESSIONS, MemoryStore};
pub use redis::{Credentials, RedisStore, Unavailable};
pub(crate) use session::Session;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Shortest time between two log lines about a store that does not answer.
const COMPLAINT: Duration = Duration::from_secs(60);

/// The sessions of all servers.
#[derive(Debug)]
pub struct Sessions {
    store: Store,
    complained: Mutex<Option<Instant>>,
}

#[derive(Debug)]
enum Store {
    Memory(MemoryStore),
    Redis(Box<RedisStore>),
}

impl Sessions {
    /// Kept in this process, for [`MAX_SESSIONS`] sessions.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::of(Store::Memory(MemoryStore::new(MAX_SESSIONS)))
    }

    /// Kept in a Redis at `host:port`.
    ///
    /// # Errors
    /// When nobody answers there, or the credentials do not count; the text says so in the words of the original router.
    pub async fn in_redis(address: &str, credentials: &Credentials) -> Result<Self, String> {
        let store = RedisStore::connect(address, credentials).await?;
        Ok(Self::of(Store::Redis(Box::new(store))))
    }

    fn of(store: Store) -> Self {
        Self {
            store,
            complained: Mutex::new(None),
        }
    }

    async fn find(&self, key: &SessionKey) -> Result<Option<Binding>, Unavailable> {
        match &self.store {
            Store::Memory(store) => Ok(store.find(key, Instant::now())),
            Store::Redis(store) => store.find(key).await,
        }
    }

    async fn commit(
        &self,
        key: &SessionKey,
        replaces: Option<&Binding>,
        binding: &Binding,
        affinity: Duration,
    ) -> Result<Committed, Unavailable> {
        match &self.store {
            Store::Memory(store) => {
                Ok(store.commit(key, replaces, binding, affinity, Instant::now()))
            }
            Store::Redis(store) => store.commit(key, replaces, binding, affinity).await,
        }
    }

    /// Drops the bindings that have expired. Redis does that by itself.
    pub fn sweep(&self) {
        if let Store::Memory(store) = &self.store {
            let expired = store.sweep(Instant::now());
            if expired > 0 {
                tracing::debug!("session sticky: binding expired ({expired} of them)");
            }
        }
    }

    /// Whether it is time for another line about the store.
    fn may_complain(&self, now: Instant) -> bool {
        let mut last = self.complained.lock();
        let may = last.is_none_or(|last| now.duration_since(last) >= COMPLAINT);
        if may {
            *last = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j2_a_store_that_is_away_draws_one_line_a_minute() {
        let sessions = Sessions::in_memory();
        let start = Instant::now();
        let at = |seconds| sessions.may_complain(start + Duration::from_secs(seconds));
        let said = [0, 1, 59, 60, 61, 119, 120].map(at);
        assert_eq!(said, [true, false, false, true, false, false, true]);
    }
}
