//! Writing statuses: by server-side apply, only what changed, and never faster than the limits.

use super::follow::chain;
use super::status::{Row, Table, Wanted};
use super::timing::Timing;
use super::wire::{Custom, Kind};
use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use routing::fleet::ObjectName;
use std::collections::HashMap;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The owner of what the router writes. All replicas of the router are one owner.
const MANAGER: &str = "kthena-router";

type Key = (Kind, ObjectName);

/// Writes what the newest table wants until nobody wants anything any more.
pub(super) async fn run(client: Client, timing: Timing, mut tables: watch::Receiver<Table>) {
    let mut reporter = Reporter {
        client,
        timing,
        written: HashMap::new(),
        not_before: HashMap::new(),
        refused: HashMap::new(),
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
    /// What was last written, or was there without that. Replicas of the router may see different pods; each writes
    /// what it sees when that changes, and none writes against the others.
    written: HashMap<Key, Wanted>,
    not_before: HashMap<Key, Instant>,
    /// Kinds of which the API server refused the last one, and until when they are left alone.
    refused: HashMap<Kind, Instant>,
}

impl Reporter {
    /// The status that is due first, and when.
    fn next(&mut self, table: &Table) -> Option<(Key, Row, Instant)> {
        self.written.retain(|key, _| table.contains_key(key));
        self.not_before.retain(|key, _| table.contains_key(key));
        let mut next: Option<(&Key, &Row, Instant)> = None;
        let now = Instant::now();
        for (key, row) in table {
            if self.written.get(key) == Some(&row.wanted) {
                continue;
            }
            if row.wanted.is(&row.seen) {
                self.written.insert(key.clone(), row.wanted.clone());
                continue;
            }
            let at = self.not_before.get(key).copied().unwrap_or(now);
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
        let pause = match answer.await {
            Ok(Ok(_)) => {
                if self.refused.remove(kind).is_some() {
                    tracing::info!("statuses of {} can be written again", kind.plural());
                }
                self.written.insert(key.clone(), row.wanted.clone());
                self.timing.status_each
            }
            Ok(Err(Error::Api(status))) if matches!(status.code, 404 | 409) => {
                // Deleted meanwhile, or replaced: its own event is under way.
                self.written.insert(key.clone(), row.wanted.clone());
                self.timing.status_each
            }
            Ok(Err(Error::Api(status)))
                if (400..500).contains(&status.code) && status.code != 429 =>
            {
                self.refuse(*kind, name, &status.message);
                self.timing.status_each
            }
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
        self.not_before.insert(key, Instant::now() + pause);
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
