//! Why a request is refused before it is routed.

use super::json::Malformed;

/// A request that no engine can be found for, by its own fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// The body is not JSON.
    #[error("the body is not valid JSON: expected {expected} at byte {offset}")]
    Json {
        /// In bytes from the start of the body.
        offset: usize,
        /// What should have been there.
        expected: &'static str,
    },
    /// The body is JSON, but not an object.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// The body is not the form that its content type promises.
    #[error("the body is not a valid multipart form: {problem}")]
    Form {
        /// What is wrong.
        problem: &'static str,
    },
    /// `model` is absent, not a string, or blank.
    #[error("model not found")]
    ModelMissing,
}

impl BadRequest {
    /// The status for the client.
    #[must_use]
    pub fn status(&self) -> http::StatusCode {
        match self {
            Self::Json { .. } | Self::NotAnObject | Self::Form { .. } => {
                http::StatusCode::BAD_REQUEST
            }
            Self::ModelMissing => http::StatusCode::NOT_FOUND,
        }
    }
}

impl From<Malformed> for BadRequest {
    fn from(m: Malformed) -> Self {
        Self::Json {
            offset: m.offset,
            expected: m.expected,
        }
    }
}
