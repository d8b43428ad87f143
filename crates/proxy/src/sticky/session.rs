//! The session of one request.

use super::{Binding, Committed, SessionKey, Unavailable};
use crate::app::App;
use crate::metrics::StageLabel;
use routing::fleet::{KeySource, ModelServer, Pod, SessionSticky};
use routing::session::{KeyParts, key};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one request knows of its session.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    app: &'a App,
    key: SessionKey,
    affinity: Duration,
    /// The binding that the store was last seen to hold.
    held: Option<Binding>,
    /// Whether this request may still bind the session: the store answers, and no other request was first.
    may_bind: bool,
}

impl<'a> Session<'a> {
    /// Looks up the session of a request; `None` when the request names none.
    pub(crate) async fn find(
        app: &'a App,
        server: &ModelServer,
        sticky: &SessionSticky,
        parts: KeyParts<'_>,
    ) -> Option<Self> {
        let (_, key) = key(&sticky.sources, parts)?;
        let key = SessionKey::new(&server.name, &key);
        let found = app.sessions.find(&key).await;
        let may_bind = found.is_ok();
        let held = found.unwrap_or_else(|error| {
            unavailable(app, "lookup", &error);
            None
        });
        Some(Self {
            app,
            key,
            affinity: sticky.affinity,
            held,
            may_bind,
        })
    }

    /// A look at the session of a request, and where its key stands; `None` when it is bound to nothing that is known now.
    /// Nothing is counted, and the session lives no longer for it.
    pub(crate) async fn look<'s>(
        app: &'a App,
        server: &ModelServer,
        sticky: &'s SessionSticky,
        parts: KeyParts<'_>,
    ) -> Option<(&'s KeySource, Self)> {
        let (source, key) = key(&sticky.sources, parts)?;
        let key = SessionKey::new(&server.name, &key);
        let held = app.sessions.find(&key).await.ok()??;
        let session = Self {
            app,
            key,
            affinity: sticky.affinity,
            held: Some(held),
            may_bind: false,
        };
        Some((source, session))
    }

    /// What the session is bound to, there or not.
    pub(crate) fn binding(&self) -> Option<&Binding> {
        self.held.as_ref()
    }

    /// The pod that the session is bound to, if the server still has it.
    pub(crate) fn pod<'s>(&self, server: &'s ModelServer) -> Option<&'s Arc<Pod>> {
        let bound = self.held.as_ref()?;
        server.pods().iter().find(|pod| pod.name == bound.pod)
    }

    /// The decode and the prefill pod that the session is bound to, if the server still has both.
    pub(crate) fn pair<'s>(&self, server: &'s ModelServer) -> Option<(&'s Arc<Pod>, &'s Arc<Pod>)> {
        let bound = self.held.as_ref()?.prefill.as_ref()?;
        let prefill = server.pods().iter().find(|pod| pod.name == *bound)?;
        Some((self.pod(server)?, prefill))
    }

    /// Binds the session to a pod, or to a pair, in place of what this request found, unless another request was first.
    /// What is bound so already lives on.
    pub(crate) async fn bind(&mut self, pod: &Pod, prefill: Option<&Pod>) {
        if !self.may_bind {
            return;
        }
        let binding = binding(pod, prefill);
        let sessions = &self.app.sessions;
        let committed = sessions
            .commit(&self.key, self.held.as_ref(), &binding, self.affinity)
            .await;
        self.may_bind = matches!(committed, Ok(Committed::Ours));
        match committed {
            Ok(Committed::Ours) => self.held = Some(binding),
            Ok(Committed::Other(other)) => self.held = Some(other),
            Err(error) => unavailable(self.app, "commit", &error),
        }
    }

    /// A pod, or a pair, served the request: binds the session to it if another was to, but failed.
    pub(crate) async fn served_by(&mut self, pod: &Pod, prefill: Option<&Pod>) {
        if self.held != Some(binding(pod, prefill)) {
            self.bind(pod, prefill).await;
        }
    }
}

fn binding(pod: &Pod, prefill: Option<&Pod>) -> Binding {
    Binding {
        pod: pod.name.clone(),
        prefill: prefill.map(|pod| pod.name.clone()),
    }
}

/// The store gave no answer: counted, and said once a minute.
fn unavailable(app: &App, stage: &'static str, error: &Unavailable) {
    let errors = &app.metrics.sticky_errors;
    errors.get_or_create(&StageLabel { stage }).inc();
    if app.sessions.may_complain(Instant::now()) {
        tracing::warn!(
            "session sticky: the store does not answer, requests are scheduled without their sessions: {error}"
        );
    }
}
