//! The metrics listener, and what is done once a second.

use crate::app::App;
use crate::front::{ClientBody, not_found};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often idle connections are looked at. Engines close theirs after seconds; their sockets should not pile up.
const SWEEP: Duration = Duration::from_secs(1);
/// Sweeps of connections between two of sessions, which cost more and hurry less.
const SESSIONS_EVERY: u64 = 60;

/// Closes idle connections that engines have closed, notes what prefix look-ups found so far, and drops sessions that have
/// expired, for ever.
pub async fn sweep(app: Arc<App>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for turn in 1u64.. {
        ticks.tick().await;
        app.upstreams.sweep();
        let now = app.uptime();
        app.insight.windows.note(now);
        app.insight.working_set.note(now);
        app.insight.agreements.note(now, &app.fleet());
        if turn.is_multiple_of(SESSIONS_EVERY) {
            app.sessions.sweep();
        }
    }
}

/// Answers one request on the metrics listener.
///
/// # Errors
/// Never: every failure is a response.
pub async fn serve_metrics(
    app: Arc<App>,
    request: Request<Incoming>,
) -> Result<Response<ClientBody>, Infallible> {
    if request.uri().path() != "/metrics" {
        return Ok(not_found());
    }
    let mut response = Response::new(ClientBody::from(Bytes::from(metrics_page(&app))));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static(crate::metrics::CONTENT_TYPE),
    );
    Ok(response)
}

/// The metrics page as it is now.
pub(crate) fn metrics_page(app: &App) -> String {
    app.metrics
        .entries
        .set(i64::try_from(app.scheduler.prefix_entries()).unwrap_or(i64::MAX));
    app.metrics.render(app.fleet()).unwrap_or_default()
}
