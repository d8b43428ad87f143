//! What remains of a pair while the decode pod's response is relayed.

use super::leg::{Leg, Prefilled};
use super::phase::Phase;
use crate::app::App;
use crate::metrics::Text;
use crate::upstream::SendError;
use routing::fleet::Pod;
use routing::schedule::Memo;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for a prefill answer after the decode pod has sent its last byte. By then the cache was handed over, so
/// the answer can only be on its way.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The prefill side of a response, and the decode phase's clock. Dropping it cancels what is under way.
pub(crate) struct Companion {
    prefill: Arc<Pod>,
    state: State,
    decode: Phase,
}

type Task = AbortOnDropHandle<Result<Prefilled, SendError>>;

enum State {
    /// Asked together with the decode pod, and not yet done. A task of its own, since nobody drives a response whose client
    /// does not read: the prefill pod would seem busy all that time.
    UnderWay(Task),
    Done,
    Failed,
}

impl Companion {
    pub(super) fn new(prefill: Arc<Pod>, decode: Phase, leg: Option<Pin<Box<Leg>>>) -> Self {
        Self {
            prefill,
            state: leg.map_or(State::Done, |leg| {
                State::UnderWay(AbortOnDropHandle::new(tokio::spawn(leg)))
            }),
            decode,
        }
    }

    /// Looks whether the prefill leg is done. Its failure changes nothing for a client that has its first byte: the decode
    /// pod has the cache and goes on.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let State::UnderWay(leg) = &mut self.state
            && let Poll::Ready(done) = Pin::new(leg).poll(cx)
        {
            self.state = outcome(done, &self.prefill);
        }
    }

    /// The decode pod has answered in good order: records the prefill pod, too, as soon as it has answered.
    pub(crate) fn succeeded(self, app: &Arc<App>, memo: Option<Memo>, model: Text) {
        self.decode.succeeded();
        let prefill = self.prefill;
        let record = move |app: &App, prefill: &Pod| {
            if let Some(memo) = &memo {
                app.served(memo, prefill.id, &model);
            }
        };
        match self.state {
            State::Done => record(app, &prefill),
            State::Failed => {}
            State::UnderWay(leg) => {
                let app = Arc::clone(app);
                tokio::spawn(async move {
                    if let Ok(done) = tokio::time::timeout(LAST_WORDS, leg).await
                        && matches!(outcome(done, &prefill), State::Done)
                    {
                        record(&app, &prefill);
                    }
                });
            }
        }
    }
}

fn outcome(done: Result<Result<Prefilled, SendError>, JoinError>, prefill: &Pod) -> State {
    let why = match done {
        Ok(Ok(Prefilled::Done(_))) => return State::Done,
        Ok(Ok(Prefilled::Answered(answer))) => format!("it answered {}", answer.head.status),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(pod = %prefill.name, "prefill failed while decode was answering: {why}");
    State::Failed
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::UnderWay(_) => "under way",
            State::Done => "done",
            State::Failed => "failed",
        };
        f.debug_struct("Companion")
            .field("prefill", &self.prefill.name)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
