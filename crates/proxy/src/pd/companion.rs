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

/// Longest wait for a prefill answer after the decode pod has sent its last byte. By then the cache was handed over, so
/// the answer can only be on its way.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The prefill side of a response, and the decode phase's clock. Dropping it cancels what is under way.
pub(crate) struct Companion {
    prefill: Arc<Pod>,
    state: State,
    decode: Phase,
}

enum State {
    /// Asked together with the decode pod, and not yet done.
    UnderWay(Pin<Box<Leg>>),
    Done,
    Failed,
}

impl Companion {
    pub(super) fn new(prefill: Arc<Pod>, decode: Phase, leg: Option<Pin<Box<Leg>>>) -> Self {
        Self {
            prefill,
            state: leg.map_or(State::Done, State::UnderWay),
            decode,
        }
    }

    /// Lets the prefill leg make progress. Its failure changes nothing for a client that has its first byte: the decode
    /// pod has the cache and goes on.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if let State::UnderWay(leg) = &mut self.state
            && let Poll::Ready(done) = leg.as_mut().poll(cx)
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

fn outcome(done: Result<Prefilled, SendError>, prefill: &Pod) -> State {
    let why = match done {
        Ok(Prefilled::Done(_)) => return State::Done,
        Ok(Prefilled::Answered(answer)) => format!("it answered {}", answer.head.status),
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
