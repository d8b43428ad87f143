//! Bindings in the memory of this router.

use super::shard::Shard;
use super::{Binding, Committed, SessionKey};
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Sessions that are remembered at most: about 50 MB, and 870 new sessions a second at the default affinity of 300 s.
pub const MAX_SESSIONS: usize = 1 << 18;
/// Parts with a lock each. Sessions are spread by their hashes.
const SHARDS: usize = 16;

/// A bounded store. When it is full, a new session takes the place of the least recently used one of its shard.
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>; SHARDS]>,
}

impl MemoryStore {
    /// A store for this many sessions, rounded up to a multiple of 16.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let each = capacity.div_ceil(SHARDS);
        Self {
            shards: Box::new(std::array::from_fn(|_| Mutex::new(Shard::new(each)))),
        }
    }

    fn shard(&self, key: &SessionKey) -> &Mutex<Shard> {
        let [first, ..] = *key.digest();
        &self.shards[usize::from(first) % SHARDS]
    }

    /// What the session is bound to.
    #[must_use]
    pub fn find(&self, key: &SessionKey, now: Instant) -> Option<Binding> {
        self.shard(key).lock().find(key.digest(), now).cloned()
    }

    /// Binds a session that is not bound, or bound to `replaces`; what is bound so already lives on.
    pub fn commit(
        &self,
        key: &SessionKey,
        replaces: Option<&Binding>,
        binding: &Binding,
        affinity: Duration,
        now: Instant,
    ) -> Committed {
        let mut shard = self.shard(key).lock();
        shard.commit(key.digest(), replaces, binding, affinity, now)
    }

    /// Drops what has expired and returns how many that were.
    pub fn sweep(&self, now: Instant) -> usize {
        self.shards.iter().map(|s| s.lock().sweep(now)).sum()
    }

    /// Sessions that are kept, expired ones among them until the next sweep.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().len()).sum()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use routing::fleet::ObjectName;

    fn key(number: usize) -> SessionKey {
        SessionKey::new(&ObjectName::new("n", "m"), &number.to_le_bytes())
    }

    #[test]
    fn j2_memory_is_bounded_whatever_clients_send() {
        let store = MemoryStore::new(320);
        let binding = Binding {
            pod: ObjectName::new("n", "pod"),
            prefill: None,
        };
        let (now, ttl) = (Instant::now(), Duration::from_secs(300));
        for number in 0..10_000 {
            let did = store.commit(&key(number), None, &binding, ttl, now);
            assert_eq!(did, Committed::Ours);
        }
        assert_eq!(store.len(), 320, "every shard is full");
        let last = store.find(&key(9_999), now);
        assert_eq!((last, store.find(&key(0), now)), (Some(binding), None));
        assert_eq!(store.sweep(now + ttl), 320);
        assert!(store.is_empty());
    }

    #[test]
    fn sessions_of_two_servers_are_two_sessions() {
        let of = |server: &str| SessionKey::new(&ObjectName::new("n", server), b"s");
        let store = MemoryStore::new(16);
        let binding = Binding {
            pod: ObjectName::new("n", "pod"),
            prefill: None,
        };
        let (now, ttl) = (Instant::now(), Duration::from_secs(1));
        store.commit(&of("a"), None, &binding, ttl, now);
        assert_eq!(store.find(&of("a"), now), Some(binding));
        assert_eq!(store.find(&of("b"), now), None);
    }
}
