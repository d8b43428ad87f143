//! The debug listener: what the router knows, and what it would do.

mod dump;
mod explain;

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
    let path = request.uri().path();
    Ok(
        match (request.method(), path.strip_prefix("/debug/config_dump/")) {
            (&Method::GET, Some(rest)) => dumped(dump::answer(&app, rest)),
            (&Method::POST, None) if path == "/debug/explain" => {
                explain::answer(&app, request).await
            }
            _ => not_found(),
        },
    )
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
