//! Every error that the router itself answers with, and the one place that turns it into a response.

use crate::auth::Denied;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use routing::fleet::ObjectName;
use routing::request::{Api, BadRequest};
use routing::route::RouteError;
use routing::schedule::ScheduleError;
use serde_json::json;

/// Why the router did not, or could not, pass a request on.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The client has no valid token.
    #[error("{0}")]
    Denied(Denied),
    /// The body cannot be read as a request.
    #[error("{0}")]
    BadRequest(BadRequest),
    /// The body is longer than allowed, as sent or as decoded.
    #[error("the request body is larger than {limit} bytes")]
    TooLarge {
        /// `MAX_REQUEST_BODY_BYTES`.
        limit: usize,
    },
    /// There are several `Host` headers.
    #[error("the request has several Host headers")]
    SeveralHosts,
    /// The client closed its connection inside the body. Nobody receives the answer.
    #[error("the client closed the connection")]
    ClientLeft,
    /// The body did not arrive.
    #[error("the request body did not arrive: {0}")]
    BrokenBody(String),
    /// The body did not arrive in time.
    #[error("the request body did not arrive: nothing came for {0} s")]
    StalledBody(u64),
    /// The content coding is unknown.
    #[error("content-encoding {0:?} is not supported; send gzip, deflate, zstd or identity")]
    UnknownCoding(String),
    /// The body does not decode.
    #[error("the request body is not valid {coding}: {why}")]
    BadCoding {
        /// The content coding.
        coding: &'static str,
        /// What the decoder says.
        why: String,
    },
    /// No route, or its target is not there.
    #[error("{0}")]
    Route(RouteError),
    /// The server has no pod.
    #[error("no available pods for model server: {0}")]
    NoPods(ObjectName),
    /// The plugins left no pod.
    #[error("can't schedule to target pod: {0}")]
    Schedule(ScheduleError),
    /// Prefill and decode are split, and there is no pair of pods for the request.
    #[error("can't schedule to target pod: {0}")]
    NoPair(ScheduleError),
    /// No pair of pods answered.
    #[error("all prefill/decode attempts failed")]
    AllPairsFailed {
        /// The last attempt's error, for the log.
        last: String,
    },
    /// No pod answered.
    #[error("request to all pods failed")]
    AllFailed {
        /// The last attempt's error, for the log.
        last: String,
    },
    /// `GET /v1/models/{id}` of a model that no route knows.
    #[error("the model {0:?} does not exist")]
    NoSuchModel(String),
}

impl Refusal {
    /// HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Denied(_) => StatusCode::UNAUTHORIZED,
            Self::BadRequest(BadRequest::ModelMissing) | Self::Route(_) | Self::NoSuchModel(_) => {
                StatusCode::NOT_FOUND
            }
            Self::BadRequest(_)
            | Self::SeveralHosts
            | Self::ClientLeft
            | Self::BrokenBody(_)
            | Self::BadCoding { .. }
            | Self::Schedule(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::StalledBody(_) => StatusCode::REQUEST_TIMEOUT,
            Self::UnknownCoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NoPods(_)
            | Self::AllFailed { .. }
            | Self::NoPair(_)
            | Self::AllPairsFailed { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Class of the error, in the access log and in the body.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Denied(_) => "authentication",
            Self::BadRequest(_)
            | Self::TooLarge { .. }
            | Self::SeveralHosts
            | Self::ClientLeft
            | Self::BrokenBody(_)
            | Self::StalledBody(_)
            | Self::UnknownCoding(_)
            | Self::BadCoding { .. } => "request_parsing",
            Self::Route(RouteError::ServerMissing(_)) | Self::NoPods(_) => "pod_discovery",
            Self::Route(RouteError::ExternalProvider(_)) => "provider_discovery",
            Self::Route(_) | Self::NoSuchModel(_) => "route_not_found",
            Self::Schedule(_) | Self::NoPair(_) => "scheduling",
            Self::AllFailed { .. } | Self::AllPairsFailed { .. } => "proxy",
        }
    }

    /// The `error_type` label of `kthena_router_requests_total`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Schedule(_) | Self::NoPair(_) | Self::AllPairsFailed { .. } => "request_failed",
            other => other.kind(),
        }
    }

    /// What the access log says; more than the client is told where the cause is inside the cluster.
    #[must_use]
    pub fn log_text(&self) -> String {
        match self {
            Self::AllFailed { last } | Self::AllPairsFailed { last } => {
                format!("request processing failed: {last}")
            }
            other => other.to_string(),
        }
    }

    /// The response, in the error shape of OpenAI's API, or of Anthropic's for `/v1/messages`.
    #[must_use]
    pub fn response(&self, api: Api) -> Response<Bytes> {
        let status = self.status();
        let mut body = json!({
            "error": {"message": self.to_string(), "type": self.kind(), "code": status.as_u16()}
        });
        if api == Api::Messages {
            body["type"] = "error".into();
        }
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Self::Denied(_) = self {
            // RFC 6750, section 3.
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(
            self,
            Self::TooLarge { .. } | Self::ClientLeft | Self::BrokenBody(_) | Self::StalledBody(_)
        ) {
            // The rest of the body may still be under way: this connection cannot carry another request.
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
