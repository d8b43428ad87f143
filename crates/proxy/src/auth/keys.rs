//! The issuer's keys, kept fresh in the background.
//!
//! One task fetches, so there is one fetch at a time. Requests only read the last good set. A request whose token names
//! a key that is not in it asks for a fetch and waits for it, but a fetch may be asked for every ten seconds only: tokens
//! with invented key ids cannot make the router flood its issuer, and are refused at once in between.

use super::fetch::Place;
use super::jwt::KeySet;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Longest wait of a request for a fetch.
const PATIENCE: Duration = Duration::from_secs(3);

/// When keys are fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long a set is used before it is fetched again, so that keys that the issuer withdrew stop to count.
    pub(super) refresh: Duration,
    /// Shortest time between the end of a fetch and one that a request asks for.
    pub(super) rest: Duration,
    /// Time to the next fetch after one that failed; doubled each time.
    pub(super) back_off: Duration,
    /// Longest such time.
    pub(super) max_back_off: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(15 * 60),
            rest: Duration::from_secs(10),
            back_off: Duration::from_secs(1),
            max_back_off: Duration::from_secs(60),
        }
    }
}

/// What the fetching task is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fetching,
    /// It fetched a short while ago.
    Resting,
    /// It fetches when it is asked to.
    Ready,
}

/// The last good key set, and where the next one comes from.
pub(super) struct Keys {
    place: Place,
    pace: Pace,
    set: ArcSwapOption<KeySet>,
    state: watch::Sender<State>,
    asked: Notify,
}

impl Keys {
    pub(super) fn new(place: Place, pace: Pace) -> Self {
        Self {
            place,
            pace,
            set: ArcSwapOption::empty(),
            // A request that comes before the first fetch waits for it.
            state: watch::Sender::new(State::Fetching),
            asked: Notify::new(),
        }
    }

    /// The last good set; `None` when there never was one.
    pub(super) fn current(&self) -> Option<Arc<KeySet>> {
        self.set.load_full()
    }

    /// Waits for a fetch that is under way, or asks for one and waits for it. Returns at once when there was one a short
    /// while ago, and in three seconds at most.
    pub(super) async fn refreshed(&self) {
        let mut state = self.state.subscribe();
        match *state.borrow_and_update() {
            State::Resting => return,
            State::Ready => self.asked.notify_one(),
            State::Fetching => {}
        }
        let done = state.wait_for(|state| *state == State::Resting);
        let _ = tokio::time::timeout(PATIENCE, done).await;
    }

    /// Fetches for ever.
    pub(super) async fn follow(&self) {
        let mut back_off = self.pace.back_off;
        loop {
            self.state.send_replace(State::Fetching);
            let fetched = self.fetch().await;
            self.state.send_replace(State::Resting);
            let pause = match fetched {
                Ok(keys) => {
                    back_off = self.pace.back_off;
                    tracing::debug!("{keys} keys of the token issuer were fetched");
                    self.pace.refresh
                }
                Err(why) => {
                    let pause = back_off;
                    back_off = (back_off * 2).min(self.pace.max_back_off);
                    let so_far = match self.current() {
                        None => "requests are refused until there are some",
                        Some(_) => "the last ones stay in use",
                    };
                    tracing::warn!(
                        "cannot fetch the keys of the token issuer, next attempt in {} s, {so_far}: {why}",
                        pause.as_secs()
                    );
                    pause
                }
            };
            let rest = self.pace.rest.min(pause);
            tokio::time::sleep(rest).await;
            self.state.send_replace(State::Ready);
            let _ = tokio::time::timeout(pause - rest, self.asked.notified()).await;
        }
    }

    async fn fetch(&self) -> Result<usize, String> {
        let set = KeySet::parse(&self.place.fetch().await?)?;
        let keys = set.len();
        self.set.store(Some(Arc::new(set)));
        Ok(keys)
    }
}
