//! The one task that owns what is known of the cluster.

use super::connect::{ClusterOptions, ConnectError};
use super::entry::Change;
use super::follow::{Failure, Note, follow};
use super::health::Health;
use super::report;
use super::scope::{NOT_ENDED, PodScope};
use super::status::{self, Table};
use super::store::Store;
use super::timing::Timing;
use super::wire::{Custom, Kind, Stored, WatchedPod};
use crate::resources::{Objects, Pod};
use http::Uri;
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher;
use std::collections::BTreeSet;
use std::fmt;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Notes that wait for the owner, at most; whoever has more to tell waits.
const WAITING: usize = 256;

const PODS: &str = "pods";

/// The cluster source: the way to an API server, and what to ask it for.
pub struct ClusterSource {
    client: Client,
    server: Uri,
    options: ClusterOptions,
    timing: Timing,
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterSource({})", self.server)
    }
}

impl ClusterSource {
    /// A source with the credentials of the kubeconfig that `KUBECONFIG` names or that lies in the home directory, else
    /// with those of the service account of the pod it runs in. Nothing is sent yet.
    ///
    /// # Errors
    /// When there are no credentials or they cannot be used.
    pub async fn connect(options: ClusterOptions) -> Result<Self, ConnectError> {
        let (client, server) = options.connect().await?;
        Ok(Self {
            client,
            server,
            options,
            timing: Timing::default(),
        })
    }

    /// A source at a server that asks for no credentials, such as `kubectl proxy`.
    ///
    /// # Errors
    /// When the options cannot be used.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn at(server: Uri, options: ClusterOptions, timing: Timing) -> Result<Self, ConnectError> {
        let (client, server) = options.at(server)?;
        Ok(Self {
            client,
            server,
            options,
            timing,
        })
    }

    /// The API server's address.
    #[must_use]
    pub fn server(&self) -> &Uri {
        &self.server
    }

    /// Follows the cluster for ever. Calls `on_objects` with all objects once everything was listed and after every
    /// change, and `on_up` when the API server stops to answer (false) or answers again (true); at first it is taken to
    /// be down. Dropping the future ends everything.
    pub async fn run(self, on_objects: impl FnMut(Objects), on_up: impl FnMut(bool)) {
        let (notes, mut inbox) = mpsc::channel(WAITING);
        let mut owner = Owner::new(self, notes, on_objects, on_up);
        loop {
            let due = owner.publish_at();
            tokio::select! {
                note = inbox.recv() => match note {
                    Some(note) => owner.take(note),
                    None => return,
                },
                () = until(due) => {}
            }
            if owner.publish_at().is_some_and(|at| at <= Instant::now()) {
                owner.publish();
            }
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Who is told what by the tasks that follow.
enum Told {
    Object(Kind, Note<Stored>),
    /// With the number of the scope that the pods were asked for with.
    Pod(u64, Note<Pod>),
}

/// All that is known, and everything that runs.
struct Owner<F, G> {
    source: ClusterSource,
    notes: mpsc::Sender<Told>,
    on_objects: F,
    on_up: G,
    store: Store,
    health: Health,
    /// What `on_up` was last told.
    up: bool,
    /// Kinds that were listed once, or need not be.
    listed: BTreeSet<Kind>,
    /// Why providers could not be listed the last time.
    no_providers: Option<Failure>,
    pods: PodWatch,
    changes: Option<Changes>,
    /// Custom resources are among them.
    resources_changed: bool,
    published: bool,
    tables: Option<watch::Sender<Table>>,
    /// Everything that runs ends with it.
    tasks: JoinSet<()>,
}

/// Changes that are not published yet.
#[derive(Clone, Copy)]
struct Changes {
    first: Instant,
    last: Instant,
    most: Change,
}

/// What pods are asked for.
#[derive(Default)]
struct PodWatch {
    scope: Option<PodScope>,
    number: u64,
    task: Option<AbortHandle>,
    listed: bool,
}

impl<F: FnMut(Objects), G: FnMut(bool)> Owner<F, G> {
    fn new(source: ClusterSource, notes: mpsc::Sender<Told>, on_objects: F, on_up: G) -> Self {
        let mut tasks = JoinSet::new();
        for kind in Kind::ALL {
            let client = source.client.clone();
            let api = match &source.options.namespace {
                Some(namespace) => Api::<Custom>::namespaced_with(client, namespace, &kind),
                None => Api::all_with(client, &kind),
            };
            let wrap = move |note| Told::Object(kind, note);
            tasks.spawn(follow(
                api,
                watcher::Config::default(),
                source.timing.clone(),
                wrap,
                notes.clone(),
            ));
        }
        let tables = source.options.statuses.then(|| {
            let (sender, receiver) = watch::channel(Table::new());
            let (client, timing) = (source.client.clone(), source.timing.clone());
            tasks.spawn(report::run(client, timing, receiver));
            sender
        });
        Self {
            source,
            notes,
            on_objects,
            on_up,
            store: Store::default(),
            health: Health::default(),
            up: false,
            listed: BTreeSet::new(),
            no_providers: None,
            pods: PodWatch::default(),
            changes: None,
            resources_changed: false,
            published: false,
            tables,
            tasks,
        }
    }

    fn take(&mut self, told: Told) {
        let change = match told {
            Told::Object(kind, note) => {
                let change = self.take_object(kind, note);
                let change = change.max(self.do_without_providers());
                self.resources_changed |= change == Change::Objects;
                change
            }
            Told::Pod(number, note) if number == self.pods.number => self.take_pod(note),
            Told::Pod(..) => Change::Nothing,
        };
        let of_interest = match change {
            Change::Nothing => false,
            Change::Status => self.tables.is_some(),
            Change::Objects => true,
        };
        if of_interest {
            let last = Instant::now();
            let before = self.changes;
            self.changes = Some(Changes {
                first: before.map_or(last, |changes| changes.first),
                last,
                most: before.map_or(change, |changes| changes.most.max(change)),
            });
        }
        // Before the first snapshot nothing is gathered.
        if !self.published && self.resources_changed && self.all_kinds_listed() {
            self.ask_for_pods(&self.store.objects());
        }
        self.tell_up();
    }

    fn tell_up(&mut self) {
        let up = self.published && self.health.is_up();
        if up != self.up {
            self.up = up;
            (self.on_up)(up);
        }
    }

    fn take_object(&mut self, kind: Kind, note: Note<Stored>) -> Change {
        match note {
            Note::Listed(objects) => {
                self.health.works(kind.plural());
                if kind == Kind::ExternalModelProvider {
                    self.no_providers = None;
                }
                let first = Change::objects(self.listed.insert(kind));
                self.store.list(kind, objects).max(first)
            }
            Note::Applied(object) => self.store.apply(kind, object),
            Note::Deleted(object) => Change::objects(self.store.delete(kind, &object)),
            Note::Failed(failure) if kind == Kind::ExternalModelProvider => {
                self.no_providers = Some(failure);
                Change::Nothing
            }
            Note::Failed(failure) => {
                self.health.failed(kind.plural(), failure, self.meanwhile());
                Change::Nothing
            }
        }
    }

    fn meanwhile(&self) -> &'static str {
        if self.published {
            "the last snapshot keeps serving"
        } else {
            "not ready until it can"
        }
    }

    /// Nothing is sent to providers yet, so a router that cannot list them serves all the same, once it knows the rest:
    /// while that cannot be listed either, the fault is the API server's. Returns what that changes.
    fn do_without_providers(&mut self) -> Change {
        let kind = Kind::ExternalModelProvider;
        let is_known = |other: &Kind| *other == kind || self.listed.contains(other);
        if !Kind::ALL.iter().all(is_known) {
            return Change::Nothing;
        }
        let Some(failure) = self.no_providers.take() else {
            return Change::Nothing;
        };
        let first = self.listed.insert(kind);
        if !failure.refused {
            let meanwhile = if first {
                "there are none, so far"
            } else {
                self.meanwhile()
            };
            self.health.failed(kind.plural(), failure, meanwhile);
        } else if first {
            tracing::info!(
                "the API server cannot be asked for {}: {}; there are none, then",
                kind.plural(),
                failure.message
            );
        } else {
            // An installation without the kind, which is not a failing one.
            self.health.works(kind.plural());
        }
        Change::objects(first)
    }

    fn take_pod(&mut self, note: Note<Pod>) -> Change {
        let changed = match note {
            Note::Listed(pods) => {
                self.health.works(PODS);
                let first = !std::mem::replace(&mut self.pods.listed, true);
                self.store.list_pods(pods) || first
            }
            Note::Applied(pod) => self.store.apply_pod(pod),
            Note::Deleted(pod) => self.store.delete_pod(&pod),
            Note::Failed(failure) => {
                self.health.failed(PODS, failure, self.meanwhile());
                false
            }
        };
        Change::objects(changed)
    }

    fn all_kinds_listed(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.listed.contains(kind))
    }

    /// When the next snapshot is due, if one is.
    fn publish_at(&self) -> Option<Instant> {
        if !self.published {
            return (self.all_kinds_listed() && self.pods.listed).then(Instant::now);
        }
        let timing = &self.source.timing;
        let Changes { first, last, .. } = self.changes?;
        Some((last + timing.quiet).min(first + timing.gather))
    }

    fn publish(&mut self) {
        let objects = self.store.objects();
        if std::mem::take(&mut self.resources_changed) {
            self.store.check_targets(&objects);
            self.ask_for_pods(&objects);
        }
        // Without the pods that were just asked for a server would be said to have none.
        if let Some(tables) = self.tables.as_ref().filter(|_| self.pods.listed) {
            tables.send_replace(status::table(&self.store, &objects));
        }
        let most = self.changes.take().map(|changes| changes.most);
        if self.published && most == Some(Change::Status) {
            return;
        }
        if !std::mem::replace(&mut self.published, true) {
            tracing::info!(
                "everything in the cluster is known: {} model servers, {} model routes, {} pods that they may select",
                objects.servers.len(),
                objects.routes.len(),
                objects.pods.len()
            );
        }
        (self.on_objects)(objects);
        self.tell_up();
    }

    /// Asks for those pods that the servers may select, if they are others than before.
    fn ask_for_pods(&mut self, objects: &Objects) {
        let scope = PodScope::of(&objects.servers);
        if scope == self.pods.scope && self.pods.task.is_some() == scope.is_some() {
            self.pods.listed |= scope.is_none();
            return;
        }
        if let Some(task) = self.pods.task.take() {
            task.abort();
        }
        while self.tasks.try_join_next().is_some() {}
        // The pods that are known stay until the list that replaces them.
        self.pods.number += 1;
        self.pods.listed = false;
        self.pods.scope = scope;
        let Some(scope) = &self.pods.scope else {
            self.health.forget(PODS);
            self.pods.listed = true;
            self.store.list_pods(Vec::new());
            return;
        };
        let client = self.source.client.clone();
        let namespace = scope
            .namespace
            .as_ref()
            .or(self.source.options.namespace.as_ref());
        let api = match namespace {
            Some(namespace) => Api::<WatchedPod>::namespaced(client, namespace),
            None => Api::all(client),
        };
        let config = watcher::Config {
            label_selector: scope.selector.clone(),
            field_selector: Some(NOT_ENDED.to_owned()),
            ..watcher::Config::default()
        };
        let number = self.pods.number;
        let wrap = move |note| Told::Pod(number, note);
        let (timing, notes) = (self.source.timing.clone(), self.notes.clone());
        let task = self.tasks.spawn(follow(api, config, timing, wrap, notes));
        self.pods.task = Some(task);
    }
}
