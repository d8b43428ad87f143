//! From a path to what answers it.

use super::ClientBody;
use super::infer::{admitted, infer};
use super::models::Listing;
use crate::app::App;
use crate::lifecycle::Phase;
use crate::record::Record;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use routing::request::Api;
use std::convert::Infallible;
use std::sync::Arc;

/// Answers one request on the inference listener.
///
/// # Errors
/// Never: every failure is a response.
pub async fn serve(
    app: Arc<App>,
    request: Request<Incoming>,
) -> Result<Response<ClientBody>, Infallible> {
    let lifecycle_app = Arc::clone(&app);
    let keeps_alive = request.version() <= Version::HTTP_11;
    let path = request.uri().path();
    let mut response = match path {
        "/healthz" => message(StatusCode::OK, "ok"),
        "/readyz" => ready(&app),
        _ if is_read(&request) && Listing::of(path).is_some() => Box::pin(list(app, request)).await,
        // Boxed: the server moves what it is given several times, and this is several kilobytes.
        _ if path.starts_with("/v1/") => Box::pin(infer(app, request)).await,
        _ => not_found(),
    };
    if keeps_alive && lifecycle_app.lifecycle.phase() >= Phase::Draining {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

fn is_read<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

async fn list(app: Arc<App>, request: Request<Incoming>) -> Response<ClientBody> {
    let (mut parts, _) = request.into_parts();
    let api = Api::of(parts.uri.path());
    let mut record = Record::start(Arc::clone(&app), api, &mut parts);
    let listed = match admitted(&app, &parts.headers).await {
        Ok(_) => Listing::of(parts.uri.path()).map(|listing| listing.answer(&app.fleet())),
        Err(refusal) => Some(Err(refusal)),
    };
    match listed {
        Some(Ok(body)) => {
            record.responding(StatusCode::OK.as_u16());
            json(StatusCode::OK, body)
        }
        Some(Err(refusal)) => {
            record.refused(&refusal);
            refusal.response(api).map(ClientBody::from)
        }
        None => not_found(),
    }
}

fn ready(app: &App) -> Response<ClientBody> {
    match app.lifecycle.phase() {
        Phase::Serving => message(StatusCode::OK, "router is ready"),
        Phase::Starting | Phase::Draining | Phase::Closing | Phase::Cutting => {
            message(StatusCode::SERVICE_UNAVAILABLE, "router is not ready")
        }
    }
}

fn message(status: StatusCode, text: &str) -> Response<ClientBody> {
    json(status, format!("{{\"message\":\"{text}\"}}").into())
}

pub(crate) fn json(status: StatusCode, body: Bytes) -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    response
}

pub(crate) fn not_found() -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(Bytes::from_static(b"404 page not found")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
