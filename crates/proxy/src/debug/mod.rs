//! The debug listener: what the router knows, and what it would do.

mod configuration;
mod decisions;
mod doctor;
mod dump;
mod explain;
mod page;
mod prefix_cache;
mod prompts;
mod router;

pub use configuration::ConfigurationFile;

use crate::app::App;
use crate::front::ClientBody;
use crate::front::{json, not_found};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;

/// Answers one request on the debug listener.
///
/// # Errors
/// Never: every failure is a response.
pub async fn serve(
    app: Arc<App>,
    request: Request<Incoming>,
) -> Result<Response<ClientBody>, Infallible> {
    let uri = request.uri();
    Ok(match (request.method(), uri.path()) {
        (&Method::GET, "/debug/doctor") => {
            doctor::answer(&app, uri.query().unwrap_or_default()).await
        }
        (&Method::GET, path) => read(&app, path, uri.query().unwrap_or_default()).await,
        (&Method::POST, "/debug/explain") => explain::answer(&app, request).await,
        _ => not_found(),
    })
}

/// What can only be read. The doctor reads here too.
async fn read(app: &Arc<App>, path: &str, query: &str) -> Response<ClientBody> {
    match path {
        "/" => page::answer(),
        "/debug/router" => shown(&router::answer(app).await),
        "/debug/decisions" => shown(&decisions::answer(app, query).await),
        "/debug/prefix-cache" => shown(&prefix_cache::answer(app).await),
        "/debug/prompts" => shown(&prompts::answer(app).await),
        _ => match path.strip_prefix("/debug/config_dump/") {
            Some(rest) => dumped(dump::answer(app, rest)),
            None => not_found(),
        },
    }
}

fn shown(body: &Value) -> Response<ClientBody> {
    json(StatusCode::OK, body.to_string().into())
}

fn dumped(answer: Option<Result<Value, &'static str>>) -> Response<ClientBody> {
    match answer {
        Some(Ok(body)) => json(StatusCode::OK, body.to_string().into()),
        Some(Err(kind)) => json(
            StatusCode::NOT_FOUND,
            format!("{{\"error\":\"{kind} not found\"}}").into(),
        ),
        None => not_found(),
    }
}
