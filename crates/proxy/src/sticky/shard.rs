//! A bounded map of bindings with an end to each: the least recently used one leaves first.

use super::{Binding, Committed};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

type Digest = [u8; 32];

/// One part of the memory store.
///
/// Every entry is in both maps: `order` holds the entries from the least to the most recently committed one, by a
/// count of commits.
#[derive(Debug)]
pub(super) struct Shard {
    capacity: usize,
    entries: HashMap<Digest, Entry>,
    order: BTreeMap<u64, Digest>,
    commits: u64,
}

#[derive(Debug)]
struct Entry {
    binding: Binding,
    expires: Instant,
    used: u64,
}

impl Shard {
    /// An empty shard for `capacity` sessions, at least one.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            commits: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn find(&self, digest: &Digest, now: Instant) -> Option<&Binding> {
        let entry = self.entries.get(digest)?;
        (entry.expires > now).then_some(&entry.binding)
    }

    /// Binds a session that is not bound, or bound to `replaces`, and lives on from `now`. A session that is bound to
    /// `binding` already lives on, too; one that is bound to anything else stays as it is.
    pub(super) fn commit(
        &mut self,
        digest: &Digest,
        replaces: Option<&Binding>,
        binding: &Binding,
        affinity: Duration,
        now: Instant,
    ) -> Committed {
        if let Some(held) = self.find(digest, now)
            && held != binding
            && Some(held) != replaces
        {
            return Committed::Other(held.clone());
        }
        self.remove(digest);
        if self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.commits += 1;
        let entry = Entry {
            binding: binding.clone(),
            expires: now + affinity,
            used: self.commits,
        };
        self.order.insert(entry.used, *digest);
        self.entries.insert(*digest, entry);
        Committed::Ours
    }

    /// Drops what has expired and returns how many that were.
    pub(super) fn sweep(&mut self, now: Instant) -> usize {
        let order = &mut self.order;
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            let alive = entry.expires > now;
            if !alive {
                order.remove(&entry.used);
            }
            alive
        });
        before - self.entries.len()
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some(entry) = self.entries.remove(digest) {
            self.order.remove(&entry.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use routing::fleet::ObjectName;

    /// The same by brute force: a list from the least to the most recently committed.
    #[derive(Default)]
    struct Reference(Vec<(u8, Binding, Instant)>);

    impl Reference {
        fn find(&self, session: u8, now: Instant) -> Option<&Binding> {
            let mut alive = self.0.iter().filter(|(_, _, expires)| *expires > now);
            alive.find(|(s, ..)| *s == session).map(|(_, b, _)| b)
        }

        fn commit(&mut self, act: &Act, capacity: usize, now: Instant) -> Committed {
            let asked = bound(act.to);
            match self.find(act.session, now) {
                Some(held) if *held != asked && Some(held) != act.replaces.map(bound).as_ref() => {
                    return Committed::Other(held.clone());
                }
                _ => {}
            }
            self.0.retain(|(s, ..)| *s != act.session);
            if self.0.len() == capacity {
                self.0.remove(0);
            }
            let expires = now + Duration::from_secs(act.seconds.into());
            self.0.push((act.session, asked, expires));
            Committed::Ours
        }
    }

    #[derive(Clone, Debug)]
    struct Act {
        session: u8,
        to: u8,
        replaces: Option<u8>,
        seconds: u8,
        pause: u8,
        sweeps: bool,
    }

    fn bound(pod: u8) -> Binding {
        Binding {
            pod: ObjectName::new("n", &format!("pod-{pod}")),
            prefill: (pod % 2 == 1).then(|| ObjectName::new("n", "prefill")),
        }
    }

    fn digest(session: u8) -> Digest {
        [session; 32]
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (
            0u8..8,
            0u8..3,
            prop::option::of(0u8..3),
            1u8..9,
            0u8..4,
            any::<bool>(),
        );
        let act = act.prop_map(|(session, to, replaces, seconds, pause, sweeps)| Act {
            session,
            to,
            replaces,
            seconds,
            pause,
            sweeps,
        });
        prop::collection::vec(act, 1..80)
    }

    proptest! {
        #[test]
        fn j2_a_shard_is_a_list_with_a_bound(acts in acts(), capacity in 1usize..6) {
            let (mut shard, mut reference) = (Shard::new(capacity), Reference::default());
            let mut now = Instant::now();
            for act in &acts {
                now += Duration::from_secs(act.pause.into());
                if act.sweeps {
                    let before = reference.0.len();
                    reference.0.retain(|(_, _, expires)| *expires > now);
                    prop_assert_eq!(shard.sweep(now), before - reference.0.len());
                }
                let replaces = act.replaces.map(bound);
                let affinity = Duration::from_secs(act.seconds.into());
                let did = shard.commit(&digest(act.session), replaces.as_ref(), &bound(act.to), affinity, now);
                prop_assert_eq!(did, reference.commit(act, capacity, now));
                prop_assert!(shard.len() <= capacity);
                prop_assert_eq!(shard.len(), reference.0.len());
                prop_assert_eq!(shard.order.len(), shard.entries.len());
                for session in 0..8 {
                    prop_assert_eq!(shard.find(&digest(session), now), reference.find(session, now));
                }
            }
        }
    }

    #[test]
    fn j2_the_first_writer_wins_and_only_who_saw_its_binding_replaces_it() {
        let mut shard = Shard::new(4);
        let (now, ttl, s) = (Instant::now(), Duration::from_secs(10), digest(1));
        assert_eq!(shard.commit(&s, None, &bound(0), ttl, now), Committed::Ours);
        let other = Committed::Other(bound(0));
        assert_eq!(shard.commit(&s, None, &bound(1), ttl, now), other);
        let late = Some(bound(2));
        assert_eq!(shard.commit(&s, late.as_ref(), &bound(1), ttl, now), other);
        let seen = Some(bound(0));
        let replaced = shard.commit(&s, seen.as_ref(), &bound(1), ttl, now);
        assert_eq!(replaced, Committed::Ours);
        assert_eq!(shard.find(&s, now), Some(&bound(1)));
    }

    #[test]
    fn j2_a_binding_ends_after_its_last_commit_not_after_its_first() {
        let mut shard = Shard::new(4);
        let (start, s) = (Instant::now(), digest(1));
        let at = |seconds| start + Duration::from_secs(seconds);
        let ttl = Duration::from_secs(10);
        shard.commit(&s, None, &bound(0), ttl, at(0));
        shard.commit(&s, None, &bound(0), ttl, at(9));
        assert_eq!(shard.find(&s, at(18)), Some(&bound(0)));
        assert_eq!(shard.find(&s, at(19)), None);
        assert_eq!(
            shard.commit(&s, None, &bound(1), ttl, at(19)),
            Committed::Ours
        );
    }
}
