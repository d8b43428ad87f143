//! The server's state, and what a test does with it.

use super::answer;
use super::fault::{Fault, Step, Verb};
use super::objects::Objects;
use crate::{CertificateAuthority, until};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub(super) verb: Verb,
    /// The plural.
    pub resource: String,
    /// From the path.
    pub namespace: Option<String>,
    /// From the path, of a status.
    pub name: Option<String>,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The body of a write.
    pub body: Value,
    /// The header Authorization.
    pub authorization: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) objects: Objects,
    pub(super) asked: Vec<Asked>,
    scenario: String,
    steps: VecDeque<Step>,
    /// The rest of a paged list, by its token.
    pub(super) pages: BTreeMap<String, (Vec<Value>, u64)>,
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Counts everything that watches may have to tell.
    pub(super) news: watch::Sender<u64>,
    /// Every watch that is under way when it changes ends in good order.
    pub(super) ends: watch::Sender<u64>,
    /// Every watch that is under way when it changes sends a bookmark.
    pub(super) bookmarks: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The fault that a request meets.
    pub(super) fn fault(&self, verb: Verb, resource: &str) -> Fault {
        let steps = &mut self.state().steps;
        let at = steps
            .iter()
            .position(|s| s.verb == verb && s.resource == resource);
        at.and_then(|at| steps.remove(at))
            .map_or(Fault::Usual, |step| step.fault)
    }
}

/// What serves TLS, and the certificate of the authority behind it, in PEM.
struct Tls {
    acceptor: TlsAcceptor,
    authority: String,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// An API server on a port of loopback. A scenario that was not played to its end fails the test when it is dropped.
#[derive(Debug)]
pub struct ApiServer {
    address: SocketAddr,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    connections: Option<JoinSet<()>>,
}

impl ApiServer {
    /// A server without objects.
    pub async fn start() -> Self {
        Self::with(None).await
    }

    /// The same behind TLS, with a certificate of this authority.
    pub async fn start_tls(authority: &CertificateAuthority) -> Self {
        Self::with(Some(Tls {
            acceptor: authority.acceptor("127.0.0.1"),
            authority: authority.pem(),
        }))
        .await
    }

    async fn with(tls: Option<Tls>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            news: watch::Sender::new(0),
            ends: watch::Sender::new(0),
            bookmarks: watch::Sender::new(0),
        });
        let mut server = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls,
            shared,
            connections: None,
        };
        server.listen().await;
        server
    }

    async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let mut connections = JoinSet::new();
        let tls = self.tls.as_ref().map(|tls| tls.acceptor.clone());
        connections.spawn(answer::accept(listener, tls, Arc::clone(&self.shared)));
        self.connections = Some(connections);
    }

    /// Ends the server: all connections are cut, and new ones refused.
    pub async fn stop(&mut self) {
        if let Some(mut connections) = self.connections.take() {
            connections.shutdown().await;
        }
    }

    /// Starts it again on its port, with all objects.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.listen().await;
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Writes a kubeconfig for it into a directory; its authority is trusted. The token in it is `secret-token`.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn kubeconfig(&self, dir: &Path) -> PathBuf {
        self.kubeconfig_trusting(dir, self.tls.as_ref().map(|tls| &*tls.authority))
    }

    /// The same with this authority, in PEM, in place of its own.
    ///
    /// # Panics
    /// When the file cannot be written.
    #[must_use]
    pub fn kubeconfig_trusting(&self, dir: &Path, authority: Option<&str>) -> PathBuf {
        let path = dir.join("kubeconfig");
        let trust = authority.map_or_else(String::new, |pem| {
            format!(", certificate-authority-data: {}", base64(pem.as_bytes()))
        });
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\ncontexts:\n- name: test\n  context: {{cluster: c, user: u}}\n\
             clusters:\n- name: c\n  cluster: {{server: \"{}\"{trust}}}\nusers:\n- name: u\n  user: {{token: secret-token}}\n",
            self.url()
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    fn change(&self, change: impl FnOnce(&mut Objects)) {
        change(&mut self.shared.state().objects);
        self.shared.news.send_modify(|n| *n += 1);
    }

    /// Stores an object.
    pub fn put(&self, resource: &str, object: Value) {
        self.change(|objects| objects.put(resource, object));
    }

    /// Changes a stored object of the namespace `default`.
    pub fn edit(&self, resource: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut object = self.get(resource, name);
        edit(&mut object);
        self.put(resource, object);
    }

    /// Deletes an object of the namespace `default`.
    pub fn delete(&self, resource: &str, name: &str) {
        self.change(|objects| objects.delete(resource, "default", name, false));
    }

    /// Deletes an object of the namespace `default`, and no watch ever hears of it.
    pub fn lose(&self, resource: &str, name: &str) {
        self.change(|objects| objects.delete(resource, "default", name, true));
    }

    /// A stored object of the namespace `default`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn get(&self, resource: &str, name: &str) -> Value {
        let key = (resource.into(), "default".into(), name.into());
        let state = self.shared.state();
        let mut object = state.objects.all[&key].clone();
        object["metadata"]["generation"].take();
        object
    }

    /// Forgets the history: what goes on from a version before now is gone.
    pub fn compact(&self) {
        let objects = &mut self.shared.state().objects;
        objects.oldest = objects.version;
        objects.history.clear();
    }

    /// Ends all watches in good order, as after `timeoutSeconds`.
    pub fn end_watches(&self) {
        self.shared.ends.send_modify(|n| *n += 1);
    }

    /// Sends a bookmark to all watches.
    pub fn bookmark(&self) {
        self.shared.bookmarks.send_modify(|n| *n += 1);
    }

    /// Adds a scenario: each step waits for the next request of its kind.
    pub fn scenario(&self, name: &str, steps: impl IntoIterator<Item = Step>) {
        let mut state = self.shared.state();
        name.clone_into(&mut state.scenario);
        state.steps.extend(steps);
    }

    /// Waits until every step was met.
    pub async fn played(&self) {
        until("the scenario is played to its end", async || {
            self.shared.state().steps.is_empty().then_some(())
        })
        .await;
    }

    fn asked(&self, verb: Verb, resource: &str) -> Vec<Asked> {
        let state = self.shared.state();
        let of = |a: &&Asked| a.verb == verb && a.resource == resource;
        state.asked.iter().filter(of).cloned().collect()
    }

    /// The lists of a resource so far, each page by itself.
    #[must_use]
    pub fn lists(&self, resource: &str) -> Vec<Asked> {
        self.asked(Verb::List, resource)
    }

    /// The watches of a resource so far.
    #[must_use]
    pub fn watches(&self, resource: &str) -> Vec<Asked> {
        self.asked(Verb::Watch, resource)
    }

    /// The statuses written so far.
    #[must_use]
    pub fn writes(&self, resource: &str) -> Vec<Asked> {
        self.asked(Verb::Write, resource)
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(*three.get(at).unwrap_or(&0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        let state = self.shared.state();
        assert!(
            state.steps.is_empty() || std::thread::panicking(),
            "the scenario {:?} was not played to its end: {:?}",
            state.scenario,
            state.steps
        );
    }
}
