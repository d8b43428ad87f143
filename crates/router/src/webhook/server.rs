//! The webhook's HTTP side: paths, content types, sizes.

use bytes::Bytes;
use control::admission;
use control::resources::Kind;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Longest review, in bytes: the object and the one before it, of which an API server takes 3 MiB each.
const MAX_BODY: usize = 7 << 20;
/// Longest time for a body to arrive; an API server waits 30 s at most for everything.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Reviews at once, so that bodies are bounded together: 56 MiB.
const AT_ONCE: usize = 8;

const PATHS: [(&str, Kind); 3] = [
    ("/validate/modelroute", Kind::ModelRoute),
    ("/validate/modelserver", Kind::ModelServer),
    (
        "/validate/externalmodelprovider",
        Kind::ExternalModelProvider,
    ),
];

/// Answers reviews, some at once.
#[derive(Clone, Debug)]
pub(super) struct Reviews(Arc<Semaphore>);

impl Default for Reviews {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// A status and what is said with it.
struct Failure(StatusCode, String);

impl Reviews {
    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let path = request.uri().path();
        if path == "/healthz" {
            return Ok(plain(StatusCode::OK, "ok".to_owned()));
        }
        let Some((_, kind)) = PATHS.iter().find(|(known, _)| *known == path) else {
            return Ok(plain(
                StatusCode::NOT_FOUND,
                "404 page not found".to_owned(),
            ));
        };
        Ok(match self.review(*kind, request).await {
            Ok(review) => {
                let mut response = Response::new(Full::from(review));
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            Err(Failure(status, message)) => {
                tracing::warn!("webhook: a request for {kind:?} was not answered: {message}");
                plain(status, message)
            }
        })
    }

    async fn review(&self, kind: Kind, request: Request<Incoming>) -> Result<Vec<u8>, Failure> {
        let bad = |message| Failure(StatusCode::BAD_REQUEST, message);
        json_only(request.headers()).map_err(bad)?;
        // Closed never; a permit that cannot be had would mean that the process ends.
        let _permit = self.0.acquire().await;
        let body = Limited::new(request.into_body(), MAX_BODY).collect();
        let body = match timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Failure(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the body is larger than {MAX_BODY} bytes"),
                ));
            }
            Ok(Err(error)) => return Err(bad(format!("failed to read request body: {error}"))),
            Err(_) => {
                return Err(Failure(
                    StatusCode::REQUEST_TIMEOUT,
                    format!("the body did not arrive within {BODY_TIMEOUT:?}"),
                ));
            }
        };
        // Megabytes of JSON take a while, and the data plane's threads must not wait for it.
        tokio::task::spawn_blocking(move || admission::answer(kind, &body))
            .await
            .map_err(|_| {
                Failure(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the review ended early".to_owned(),
                )
            })?
            .map_err(|error| bad(error.to_string()))
    }
}

fn json_only(headers: &HeaderMap) -> Result<(), String> {
    let given = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    let given = String::from_utf8_lossy(given);
    let media = given.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(format!(
        "invalid Content-Type, expected application/json, got {given}"
    ))
}

fn plain(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
