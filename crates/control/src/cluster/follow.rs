//! Following one kind of object: a paged list, then a watch, again and again.

use super::timing::{Backoff, Timing, spread};
use futures_util::StreamExt;
use kube::api::Api;
use kube::core::Status;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Error, Resource};
use serde::de::DeserializeOwned;
use std::error::Error as _;
use std::fmt;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// What is known of a kind, or that nothing new can be learnt.
#[derive(Debug)]
pub(super) enum Note<T> {
    /// All objects there are: whatever is not among them is gone.
    Listed(Vec<T>),
    /// One that is new or changed.
    Applied(T),
    /// One that is gone.
    Deleted(T),
    /// The last try failed. What comes after the recovery begins with [`Note::Listed`].
    Failed(Failure),
}

/// Why a kind cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// What went wrong, in words that read alone.
    pub(super) message: String,
    /// The API server said no, as when a right is missing: it is there, and no other kind is concerned.
    pub(super) refused: bool,
}

/// How a session of list and watch ended.
enum End {
    /// Its time was up.
    Stale,
    /// The API server no longer knows the versions that the watch went on from.
    Gone,
    Failed(Failure),
    /// Nobody receives any more.
    Unheard,
}

/// Follows all objects of the API and sends what is learnt, as `wrap` wraps it, until nobody receives it any more.
pub(super) async fn follow<K, T, M>(
    api: Api<K>,
    config: watcher::Config,
    timing: Timing,
    wrap: impl Fn(Note<T>) -> M,
    to: mpsc::Sender<M>,
) where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    T: From<K>,
{
    let mut backoff = Backoff::new(&timing);
    loop {
        let begun = Instant::now();
        let end = session(&api, &config, &timing, &wrap, &to).await;
        // A session that lasted was a success. One that ends at once over and over must not become a hot loop.
        if begun.elapsed() >= timing.longest_pause {
            backoff.reset();
        }
        match end {
            End::Stale => backoff.reset(),
            End::Gone => sleep(backoff.pause()).await,
            End::Failed(failure) => {
                if to.send(wrap(Note::Failed(failure))).await.is_err() {
                    return;
                }
                sleep(backoff.pause()).await;
            }
            End::Unheard => return,
        }
    }
}

/// One list, and a watch from there to its first failure or its age limit. The watcher itself reconnects where nothing
/// can have been missed; bookmarks keep that so.
async fn session<K, T, M>(
    api: &Api<K>,
    config: &watcher::Config,
    timing: &Timing,
    wrap: &impl Fn(Note<T>) -> M,
    to: &mpsc::Sender<M>,
) -> End
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    T: From<K>,
{
    let mut events = pin!(watcher(api.clone(), config.clone()));
    let mut listed = Vec::new();
    loop {
        match timeout(timing.answer, events.next()).await {
            Ok(Some(Ok(Event::InitApply(object)))) => listed.push(T::from(object)),
            Ok(Some(Ok(Event::InitDone))) => break,
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return End::of(error),
            Ok(None) | Err(_) => {
                return End::Failed(Failure {
                    message: format!("no answer within {:?}", timing.answer),
                    refused: false,
                });
            }
        }
    }
    listed.shrink_to_fit();
    if to.send(wrap(Note::Listed(listed))).await.is_err() {
        return End::Unheard;
    }
    let stale = Instant::now() + spread(timing.relist, 0.9, 1.1);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = sleep_until(stale) => return End::Stale,
        };
        let note = match event {
            Some(Ok(Event::Apply(object))) => Note::Applied(object.into()),
            Some(Ok(Event::Delete(object))) => Note::Deleted(object.into()),
            Some(Err(error)) => return End::of(error),
            // Another list would begin only after an error, and a watcher does not end.
            Some(Ok(_)) | None => return End::Gone,
        };
        if to.send(wrap(note)).await.is_err() {
            return End::Unheard;
        }
    }
}

impl End {
    fn of(error: watcher::Error) -> Self {
        let refusal = |status: &Status| match status.code {
            410 => Self::Gone,
            code => Self::Failed(Failure {
                message: words(status),
                // Too many requests and a time-out are no answers for good.
                refused: (400..500).contains(&code) && ![408, 429].contains(&code),
            }),
        };
        match error {
            watcher::Error::InitialListFailed(Error::Api(status))
            | watcher::Error::WatchStartFailed(Error::Api(status))
            | watcher::Error::WatchFailed(Error::Api(status))
            | watcher::Error::WatchError(status) => refusal(&status),
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Self::Failed(Failure {
                message: chain(&error),
                refused: false,
            }),
            watcher::Error::NoResourceVersion => Self::Failed(Failure {
                message: "the answer has no resourceVersion".to_owned(),
                refused: false,
            }),
        }
    }
}

/// What an answer says that went wrong. An event that cannot be read comes as a status that says nothing at all.
fn words(status: &Status) -> String {
    match (&*status.message, &*status.reason, status.code) {
        ("", "", 0) => "it sent an event that cannot be read".to_owned(),
        ("", "", code) => format!("status {code}"),
        ("", text, code) | (text, _, code) => format!("{text} (status {code})"),
    }
}

/// An error with its causes, each once: some errors repeat their cause in their own text.
pub(super) fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
