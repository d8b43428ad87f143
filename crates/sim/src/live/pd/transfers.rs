//! The prompts that a prefill engine has computed for decode engines.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::timeout};

/// Prompts kept for decode engines that have yet to come; the oldest are given up beyond.
const MAX_KEPT: usize = 4096;

/// One prompt.
#[derive(Clone, Copy, Debug)]
struct Entry {
    digest: u64,
    computed: bool,
    claimed: bool,
}

/// Prompts by key, bounded.
#[derive(Debug, Default)]
pub(in crate::live) struct Transfers {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<u64, Entry>,
    kept: VecDeque<u64>,
}

/// Why a prompt cannot be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotHere {
    Unknown,
    OtherPrompt,
    ClaimedBefore,
}

impl NotHere {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "no prefill was done under this key",
            Self::OtherPrompt => "the prefill was done for another prompt",
            Self::ClaimedBefore => "the prefill was taken by another decode",
        }
    }
}

impl Transfers {
    /// Keeps a prompt that was computed until it is claimed.
    pub(super) fn keep(&self, key: u64, digest: u64) {
        let mut state = self.state.lock();
        let entry = Entry {
            digest,
            computed: true,
            claimed: false,
        };
        state.entries.insert(key, entry);
        state.kept.push_back(key);
        while state.kept.len() > MAX_KEPT
            && let Some(oldest) = state.kept.pop_front()
        {
            state.entries.remove(&oldest);
        }
    }

    /// Opens a room for a prompt that is yet to be computed. `None` when the room is in use.
    pub(super) fn open(self: &Arc<Self>, room: u64, digest: u64) -> Option<Room> {
        let mut state = self.state.lock();
        if state.entries.contains_key(&room) {
            return None;
        }
        let entry = Entry {
            digest,
            computed: false,
            claimed: false,
        };
        state.entries.insert(room, entry);
        drop(state);
        self.changed.notify_waiters();
        Some(Room {
            transfers: Arc::clone(self),
            room,
        })
    }

    /// Takes a prompt; waits up to `patience` for it to be there and computed.
    pub(super) async fn claim(
        &self,
        key: u64,
        digest: u64,
        patience: Duration,
    ) -> Result<(), NotHere> {
        let claimed = self.when(|state| {
            let entry = state.entries.get_mut(&key).filter(|entry| entry.computed)?;
            Some(if entry.digest != digest {
                Err(NotHere::OtherPrompt)
            } else if std::mem::replace(&mut entry.claimed, true) {
                Err(NotHere::ClaimedBefore)
            } else {
                Ok(())
            })
        });
        let result = timeout(patience, claimed).await;
        self.changed.notify_waiters();
        result.unwrap_or(Err(NotHere::Unknown))
    }

    /// Looks at every change until there is an answer.
    async fn when<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(answer) = look(&mut self.state.lock()) {
                return answer;
            }
            changed.await;
        }
    }
}

/// A room of a prefill engine. Dropping it closes the room.
#[derive(Debug)]
pub(super) struct Room {
    transfers: Arc<Transfers>,
    room: u64,
}

impl Room {
    /// The prompt was computed; waits until a decode engine has taken it.
    pub(super) async fn hand_over(self, patience: Duration) -> bool {
        if let Some(entry) = self.transfers.state.lock().entries.get_mut(&self.room) {
            entry.computed = true;
        }
        self.transfers.changed.notify_waiters();
        let taken = self.transfers.when(|state| {
            let entry = state.entries.get(&self.room)?;
            entry.claimed.then_some(())
        });
        timeout(patience, taken).await.is_ok()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.transfers.state.lock().entries.remove(&self.room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_kept_prompt_is_claimed_once_and_by_its_own_decode() {
        let transfers = Transfers::default();
        transfers.keep(7, 1);
        assert_eq!(transfers.claim(8, 1, NOW).await, Err(NotHere::Unknown));
        assert_eq!(transfers.claim(7, 2, NOW).await, Err(NotHere::OtherPrompt));
        assert_eq!(transfers.claim(7, 1, NOW).await, Ok(()));
        assert_eq!(
            transfers.claim(7, 1, NOW).await,
            Err(NotHere::ClaimedBefore)
        );
    }

    #[tokio::test]
    async fn prompts_that_nobody_claims_are_given_up() {
        let transfers = Transfers::default();
        (0..=MAX_KEPT as u64).for_each(|key| transfers.keep(key, 1));
        assert_eq!(transfers.state.lock().entries.len(), MAX_KEPT);
        assert_eq!(transfers.claim(0, 1, NOW).await, Err(NotHere::Unknown));
        assert_eq!(transfers.claim(1, 1, NOW).await, Ok(()));
    }

    #[tokio::test]
    async fn both_sides_of_a_room_wait_for_each_other() {
        let transfers = Arc::new(Transfers::default());
        let claiming = Arc::clone(&transfers);
        let claim = tokio::spawn(async move { claiming.claim(5, 1, LONG).await });
        tokio::task::yield_now().await;
        let room = transfers.open(5, 1).unwrap();
        assert!(transfers.open(5, 1).is_none(), "in use");
        assert!(!claim.is_finished());
        assert!(room.hand_over(LONG).await);
        assert_eq!(claim.await.unwrap(), Ok(()));
        assert!(transfers.state.lock().entries.is_empty());
    }

    #[tokio::test]
    async fn a_room_without_a_guest_is_given_up() {
        let transfers = Arc::new(Transfers::default());
        assert!(!transfers.open(5, 1).unwrap().hand_over(NOW).await);
    }
}
