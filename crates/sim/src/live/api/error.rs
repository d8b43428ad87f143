//! Error answers in the shapes recorded from vLLM 0.32.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::body::{Body, json as json_response};
use crate::model::Rejected;

/// Which API's error shape is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum Shape {
    /// `{"error":{"message","type","param","code"}}`
    OpenAi,
    /// `{"type":"error","error":{"type","message"}}`, for what the engine itself refuses on `/v1/messages`.
    Anthropic,
    /// `{"detail": "..."}`
    Detail,
}

/// A refused request.
#[derive(Clone, Debug)]
pub(in crate::live) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    message: String,
    param: Option<String>,
    /// The schema's errors have the OpenAI shape on every path.
    schema: bool,
    detail: bool,
}

impl ApiError {
    fn engine(
        status: StatusCode,
        kind: &'static str,
        message: String,
        param: Option<&str>,
    ) -> Self {
        Self {
            status,
            kind,
            message,
            param: param.map(str::to_owned),
            schema: false,
            detail: false,
        }
    }

    /// A request that the schema allows and the engine does not.
    pub(in crate::live) fn bad_request(message: impl Into<String>, param: Option<&str>) -> Self {
        Self::engine(
            StatusCode::BAD_REQUEST,
            "BadRequestError",
            message.into(),
            param,
        )
    }

    /// A value out of its range, with the parameter named behind the message.
    pub(super) fn bad_value(message: &str, param: &str, value: impl std::fmt::Display) -> Self {
        Self::bad_request(
            format!("{message} (parameter={param}, value={value})"),
            Some(param),
        )
    }

    /// The KV cache did not get from prefill to decode.
    pub(in crate::live) fn transfer(status: StatusCode, message: &str) -> Self {
        Self::engine(status, "InternalServerError", message.to_owned(), None)
    }

    pub(super) fn unknown_model(model: &str, known: &[String]) -> Self {
        let message = format!(
            "The model `{model}` does not exist. Valid aliases: {}.",
            known.join(", ")
        );
        Self::engine(
            StatusCode::NOT_FOUND,
            "NotFoundError",
            message,
            Some("model"),
        )
    }

    pub(super) fn prompt_too_long(limit: usize, tokens: usize, counted_whole: bool) -> Self {
        // A chat's prompt is counted only to one past the limit, a list of token ids as a whole.
        let (at_least, tokens) = if counted_whole {
            ("", tokens)
        } else {
            ("at least ", limit + 1)
        };
        let message = format!(
            "This model's maximum context length is {limit} tokens. However, your prompt contains {at_least}{tokens} input \
             tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."
        );
        Self::bad_value(&message, "input_tokens", tokens)
    }

    /// A field that the schema refuses. `loc` is the path to it, as `body.messages`.
    pub(super) fn schema(kind: &str, loc: &str, message: &str, input: &str) -> Self {
        let text = format!(
            "1 validation error:\n  {{'type': '{kind}', 'loc': '{loc}', 'msg': '{message}', 'input': '{input}'}}"
        );
        Self::schema_text(text, Some(loc))
    }

    pub(super) fn invalid_json(at: usize) -> Self {
        let loc = format!("body.{at}");
        let text = format!(
            "1 validation error:\n  {{'type': 'json_invalid', 'loc': '{loc}', 'msg': 'JSON decode error', 'input': \
             '<dict of 0 items>', 'ctx': {{'error': 'Expecting value'}}}}"
        );
        Self::schema_text(text, Some(&loc))
    }

    pub(super) fn media_type() -> Self {
        Self::schema_text(
            "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
                .to_owned(),
            None,
        )
    }

    fn schema_text(message: String, param: Option<&str>) -> Self {
        let error = Self::engine(StatusCode::BAD_REQUEST, "Bad Request", message, param);
        Self {
            schema: true,
            ..error
        }
    }

    pub(in crate::live) fn detail(status: StatusCode, detail: &str) -> Self {
        Self {
            detail: true,
            ..Self::engine(status, "", detail.to_owned(), None)
        }
    }

    pub(super) fn unparsable() -> Self {
        Self::detail(
            StatusCode::BAD_REQUEST,
            "There was an error parsing the body",
        )
    }

    pub(in crate::live) fn rejected(rejected: Rejected) -> Self {
        match rejected {
            Rejected::QueueFull => Self::engine(
                StatusCode::SERVICE_UNAVAILABLE,
                "Service Unavailable",
                "The engine is currently busy and cannot accept new requests. Please try again later or on a different \
                 instance."
                    .to_owned(),
                None,
            ),
            Rejected::Empty | Rejected::TooLong { .. } => Self::bad_request(rejected.to_string(), None),
        }
    }

    /// The answer, in the shape of the path it is for.
    pub(in crate::live) fn into_response(self, shape: Shape) -> Response<Body> {
        let shape = match shape {
            _ if self.detail => Shape::Detail,
            Shape::Anthropic if self.schema => Shape::OpenAi,
            shape => shape,
        };
        json_response(self.status, &self.body(shape))
    }

    fn body(&self, shape: Shape) -> Value {
        match shape {
            Shape::OpenAi => json!({"error": {
                "message": self.message, "type": self.kind, "param": self.param, "code": self.status.as_u16(),
            }}),
            Shape::Anthropic => {
                json!({"type": "error", "error": {"type": self.kind, "message": self.message}})
            }
            Shape::Detail => json!({"detail": self.message}),
        }
    }
}
