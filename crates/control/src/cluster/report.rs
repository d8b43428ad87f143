//! Writing statuses: by server-side apply, only what changed, and never faster than the limits.

use super::follow::chain;
use super::status::{Row, Table, Wanted};
use super::timing::{Backoff, Timing, spread};
use super::wire::{Custom, Kind};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use routing::fleet::ObjectName;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The owner of what the router writes. All replicas of the router are one owner.
const MANAGER: &str = "kthena-router";

/// So many failures of one status in a row are no passing fault.
const FAILS: u32 = 3;

type Key = (Kind, ObjectName);

/// Writes what the newest table wants until nobody wants anything any more.
pub(super) async fn run(client: Client, timing: Timing, mut tables: watch::Receiver<Table>) {
    let mut reporter = Reporter {
        client,
        timing,
        tried: HashMap::new(),
        refused: HashMap::new(),
        failing: HashMap::new(),
    };
    loop {
        let next = reporter.next(&tables.borrow_and_update());
        let changed = match next {
            None => tables.changed().await,
            Some((key, row, at)) if at <= Instant::now() => {
                reporter.write(key, &row).await;
                sleep(reporter.timing.status_any).await;
                continue;
            }
            Some((_, _, at)) => tokio::select! {
                changed = tables.changed() => changed,
                () = sleep_until(at) => continue,
            },
        };
        if changed.is_err() {
            return;
        }
    }
}

struct Reporter {
    client: Client,
    timing: Timing,
    tried: HashMap<Key, Tried>,
    /// Kinds of which the API server refused the last one, and until when they are left alone.
    refused: HashMap<Kind, Instant>,
    /// Of each kind the object whose status fails over and over, as the log knows it.
    failing: HashMap<Kind, ObjectName>,
}

/// What became of one status so far.
struct Tried {
    /// What was last written, or was there without that.
    said: Option<Wanted>,
    /// When to write the same again, since something else is there.
    again: Option<Instant>,
    not_before: Instant,
    /// Failures since the last success, and the pauses after them.
    failures: u32,
    backoff: Option<Backoff>,
}

impl Tried {
    fn new(now: Instant) -> Self {
        Self {
            said: None,
            again: None,
            not_before: now,
            failures: 0,
            backoff: None,
        }
    }

    /// When the status is due, if it is.
    fn due(&mut self, row: &Row, now: Instant, timing: &Timing) -> Option<Instant> {
        let said = self.said.as_ref() == Some(&row.wanted);
        if row.wanted.is(&row.seen) {
            if !said {
                self.said = Some(row.wanted.clone());
            }
            self.again = None;
            return None;
        }
        if !said {
            self.again = None;
            return Some(self.not_before);
        }
        // Either its own event is still under way, or somebody else has written since. Routers that see different pods
        // for a moment must not write against each other, so what somebody else wrote stays for a while.
        let again = self
            .again
            .get_or_insert_with(|| now + spread(timing.status_again, 0.5, 1.0));
        Some(self.not_before.max(*again))
    }
}

impl Reporter {
    /// The status that is due first, and when.
    fn next(&mut self, table: &Table) -> Option<(Key, Row, Instant)> {
        self.tried.retain(|key, _| table.contains_key(key));
        self.failing
            .retain(|kind, name| table.contains_key(&(*kind, name.clone())));
        let mut next: Option<(&Key, &Row, Instant)> = None;
        let now = Instant::now();
        for (key, row) in table {
            if !self.tried.contains_key(key) {
                self.tried.insert(key.clone(), Tried::new(now));
            }
            let tried = self.tried.get_mut(key);
            let Some(at) = tried.and_then(|tried| tried.due(row, now, &self.timing)) else {
                continue;
            };
            let at = self.refused.get(&key.0).map_or(at, |until| at.max(*until));
            if next.is_none_or(|(_, _, first)| at < first) {
                next = Some((key, row, at));
            }
        }
        next.map(|(key, row, at)| (key.clone(), row.clone(), at))
    }

    async fn write(&mut self, key: Key, row: &Row) {
        let (kind, name) = &key;
        let api: Api<Custom> = Api::namespaced_with(self.client.clone(), name.namespace(), kind);
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let body = row.wanted.body(*kind, name, &row.seen, &now.to_string());
        let how = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(&body);
        let answer = timeout(
            self.timing.answer,
            api.patch_status(name.name(), &how, &patch),
        );
        let answer = answer.await;
        let mut tried = self
            .tried
            .remove(&key)
            .unwrap_or_else(|| Tried::new(Instant::now()));
        let pause = match answer {
            Ok(Ok(_)) => {
                self.works(*kind, name);
                tried = Tried::new(Instant::now());
                tried.said = Some(row.wanted.clone());
                self.timing.status_each
            }
            Ok(Err(Error::Api(status))) => match status.code {
                404 => {
                    // Deleted meanwhile: its own event is under way.
                    tried.said = Some(row.wanted.clone());
                    self.timing.status_each
                }
                // Written by somebody else at the same time, or replaced, and its own event is under way.
                409 => self.failed(&key, &mut tried, self.timing.status_each, &status.message),
                429 => self.timing.longest_pause,
                400..500 => {
                    self.refuse(*kind, name, &status.message);
                    self.timing.status_each
                }
                _ => self.failed(&key, &mut tried, self.timing.longest_pause, &status.message),
            },
            Ok(Err(error)) => {
                tracing::debug!(
                    "the status of {} {name} cannot be written: {}",
                    kind.as_str(),
                    chain(&error)
                );
                self.timing.longest_pause
            }
            Err(_) => self.timing.longest_pause,
        };
        tried.not_before = Instant::now() + pause;
        self.tried.insert(key, tried);
    }

    fn works(&mut self, kind: Kind, name: &ObjectName) {
        let failed = self.failing.get(&kind) == Some(name);
        if failed {
            self.failing.remove(&kind);
        }
        if self.refused.remove(&kind).is_some() || failed {
            tracing::info!("statuses of {} can be written again", kind.plural());
        }
    }

    /// The API server could not take a status, of which others may fare better. Says so once, when it is no passing
    /// fault: some answer with an error of theirs where a field is not in an older CRD. Returns the pause, which begins
    /// with `first` and doubles.
    fn failed(&mut self, key: &Key, tried: &mut Tried, first: Duration, message: &str) -> Duration {
        let (kind, name) = key;
        let longest = self.timing.status_refused;
        tried.failures += 1;
        if tried.failures >= FAILS && !self.failing.contains_key(kind) {
            self.failing.insert(*kind, name.clone());
            tracing::warn!(
                "the status of {} {name} cannot be written: {message}; the router serves without, and tries again ever \
                 less often, up to every {longest:?} (--status=false turns statuses off)",
                kind.as_str(),
            );
        }
        let backoff = tried
            .backoff
            .get_or_insert(Backoff::between(first, longest));
        backoff.pause()
    }

    /// The API server said no, because a right is missing or a CRD is older than this router. The next status of the
    /// kind would fare no better.
    fn refuse(&mut self, kind: Kind, name: &ObjectName, message: &str) {
        let pause = self.timing.status_refused;
        let known = self.refused.insert(kind, Instant::now() + pause);
        if known.is_none() {
            tracing::warn!(
                "the status of {} {name} was refused: {message}; the router serves without, and tries again every \
                 {pause:?} (--status=false turns statuses off)",
                kind.as_str(),
            );
        }
    }
}
