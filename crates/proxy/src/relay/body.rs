//! The body that the client receives.

use super::Watch;
use crate::forward::{Answer, broken};
use crate::pd::Companion;
use crate::record::Record;
use crate::upstream::{BodyError, UpstreamBody};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response;
use http_body::{Body, Frame, SizeHint};
use routing::fleet::InFlight;
use routing::request::Api;
use routing::schedule::Memo;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Passes a pod's body on and settles the request at its end: what was learnt is recorded once, when the pod has sent
/// its last byte in good order. Dropping it cancels the upstream request at once.
#[derive(Debug)]
pub(crate) struct RelayBody {
    /// Came with the head.
    first: Option<Bytes>,
    upstream: UpstreamBody,
    watch: Watch,
    /// Held back by the watch, and due after the upstream's end.
    last: Option<Bytes>,
    /// Whether bytes pass one to one, so that the upstream's length is the client's.
    exact: bool,
    ended: bool,
    /// The connection's end is the body's end, so that the last event, or the last bracket, alone tells a whole answer
    /// from a cut one.
    unframed: bool,
    /// The end is missing, and the client is still to be told.
    unfinished: bool,
    /// Why the pod's body broke off, until the client is told.
    broken: Option<BodyError>,
    success: bool,
    memo: Option<Memo>,
    in_flight: Option<InFlight>,
    /// The prefill side, if another pod did the prefill.
    companion: Option<Box<Companion>>,
    record: Record,
}

impl RelayBody {
    pub(crate) fn new(
        answer: Answer,
        mut watch: Watch,
        memo: Option<Memo>,
        record: Record,
    ) -> (response::Parts, Self) {
        let exact = !watch.hides();
        let framings = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let unframed = !framings
            .iter()
            .any(|name| answer.head.headers.contains_key(name))
            && !matches!(record.api, Api::Other(_))
            && watch.tells_its_end();
        let mut body = Self {
            first: answer.first,
            upstream: answer.body,
            watch,
            last: None,
            exact,
            ended: false,
            unframed,
            unfinished: false,
            broken: None,
            success: answer.head.status.is_success(),
            memo,
            in_flight: Some(answer.in_flight),
            companion: answer.companion,
            record,
        };
        if body.first.is_none() && body.upstream.is_end_stream() {
            body.settle();
        }
        (answer.head, body)
    }

    /// The upstream response is complete.
    fn settle(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        let (rest, facts) = self.watch.finish();
        self.last = Some(rest).filter(|r| !r.is_empty());
        self.record.reported(facts.usage);
        if facts.gave_up {
            self.record
                .broke_off("the engine reported an error, or aborted, inside its response".into());
        }
        self.unfinished = self.unframed && self.success && !facts.complete && !facts.gave_up;
        if self.unfinished {
            self.record.broke_off(broken(&BodyError::Unfinished));
        }
        let served = self.success && !facts.gave_up && !self.unfinished;
        if served {
            self.record.served();
        }
        let (app, model) = (&self.record.app, self.record.model_label());
        if let (Some(memo), Some(in_flight), true) = (&self.memo, &self.in_flight, served) {
            app.served(memo, in_flight.pod().id, model);
        }
        if let Some(companion) = self.companion.take()
            && served
        {
            companion.succeeded(app, self.memo.take(), model.clone());
        }
        self.in_flight = None;
        self.record.upstream_ended();
    }

    /// The error ends the client's connection at once. What was passed on before may still be in the server's buffer: a
    /// pause lets it be written.
    fn break_off<T>(&mut self, error: BodyError, cx: &mut Context<'_>) -> Poll<T> {
        self.broken = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn next_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(error) = self.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(companion) = &mut self.companion {
            companion.drive(cx);
        }
        loop {
            let piece = match self.first.take() {
                Some(first) => first,
                None if self.ended => {
                    let last = self.last.take();
                    if last.is_some() || !std::mem::take(&mut self.unfinished) {
                        return Poll::Ready(last.map(Ok));
                    }
                    return self.break_off(BodyError::Unfinished, cx);
                }
                None => match ready!(Pin::new(&mut self.upstream).poll_frame(cx)) {
                    None => {
                        self.settle();
                        continue;
                    }
                    Some(Err(error)) => {
                        self.ended = true;
                        self.in_flight = None;
                        self.companion = None;
                        self.record.broke_off(broken(&error));
                        return self.break_off(error, cx);
                    }
                    // Trailers end here: their announcement is hop-by-hop and was not passed on.
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => data,
                        Err(_) => continue,
                    },
                },
            };
            if matches!(self.watch, Watch::Events(_)) {
                self.record.trail.streams();
            }
            let visible = self.watch.push(piece);
            if self.upstream.is_end_stream() {
                self.settle();
            }
            if !visible.is_empty() {
                return Poll::Ready(Some(Ok(visible)));
            }
        }
    }
}

impl Body for RelayBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.next_piece(cx).map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
            && self.first.is_none()
            && self.last.is_none()
            && self.broken.is_none()
            && !self.unfinished
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |f| f.len() as u64);
        match self.upstream.size_hint().exact() {
            Some(rest) if self.exact => SizeHint::with_exact(rest + first),
            _ => SizeHint::default(),
        }
    }
}

impl Drop for RelayBody {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Clients may leave once they have the event that says it was all.
        if self.watch.is_complete() {
            self.settle();
        } else {
            self.record.client_left();
        }
    }
}
