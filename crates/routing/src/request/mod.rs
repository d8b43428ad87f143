//! What the router needs to know about a request, read in one borrowed pass over its body.
//!
//! The body is never parsed into a tree and never written out again: [`ModelRequest`] points into the bytes, and
//! [`ModelRequest::edits`] names the few bytes that differ on the way to a pod, so that key order, number spelling and
//! unknown fields survive.

mod api;
mod edit;
mod error;
mod escape;
mod form;
pub(crate) mod json;
pub(crate) mod members;
mod scan;
pub(crate) mod value;

pub use api::Api;
pub use edit::{Edit, Edits, apply, merge};
pub use error::BadRequest;

use crate::prompt::{Fields, Prompt};
use edit::Spot;
use json::Cursor;
use std::borrow::Cow;
use value::Value;

/// The facts of one request, borrowed from its body.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// Which API it uses.
    pub api: Api,
    /// The model that the client asks for, decoded. Never blank. A lone surrogate in it becomes U+FFFD.
    pub model: Cow<'a, str>,
    /// Whether `stream` is `true`.
    pub stream: bool,
    /// What the engine will compute on, for prefix matching and token estimates.
    pub prompt: Prompt<'a>,
    spot: Spot,
}

/// Reads a request. `path` is the URL's path without the query; a `multipart/form-data` body is read as a form, every
/// other one as JSON.
///
/// Of several top-level members of one name the last counts, as it does in the engines.
///
/// # Errors
/// The body is malformed, or names no model.
pub fn extract<'a>(
    path: &str,
    content_type: Option<&str>,
    body: &'a [u8],
) -> Result<ModelRequest<'a>, BadRequest> {
    let api = Api::of(path);
    match content_type.and_then(form::boundary) {
        Some(boundary) => from_form(api, &boundary?, body),
        None => from_json(api, body),
    }
}

fn from_json(api: Api, body: &[u8]) -> Result<ModelRequest<'_>, BadRequest> {
    let mut cursor = Cursor::document(body)?;
    if cursor.peek() != Some(b'{') {
        cursor.value()?;
        cursor.end()?;
        return Err(BadRequest::NotAnObject);
    }
    cursor.enter();
    let mut fields = Fields::default();
    let (mut model, mut stream, mut stream_options, mut last) = (None::<Value<'_>>, false, None, 0);
    while let Some(key) = cursor.next_key(last == 0)? {
        let key = key.decoded();
        if !fields.read(api, &key, &mut cursor)? {
            let value = cursor.value()?;
            match &*key {
                b"model" => model = Some(value),
                b"stream" => stream = value.is_true(),
                b"stream_options" => stream_options = Some(value),
                _ => {}
            }
        }
        last = cursor.at();
    }
    cursor.end()?;
    let value = model.ok_or(BadRequest::ModelMissing)?;
    let model = named(value.text().ok_or(BadRequest::ModelMissing)?.decoded())?;
    let spot = Spot::json(value, stream_options, last);
    Ok(ModelRequest {
        api,
        model,
        stream,
        prompt: fields.prompt(api),
        spot,
    })
}

fn from_form<'a>(
    api: Api,
    boundary: &[u8],
    body: &'a [u8],
) -> Result<ModelRequest<'a>, BadRequest> {
    let fields = form::fields(boundary, body)?;
    let range = fields.model.ok_or(BadRequest::ModelMissing)?;
    let model = named(Cow::Borrowed(&body[range.clone()]))?;
    let stream = fields.stream.is_some_and(|range| &body[range] == b"true");
    Ok(ModelRequest {
        api,
        model,
        stream,
        prompt: Prompt::default(),
        spot: Spot::form(range),
    })
}

/// The name of a model, unless it is blank.
fn named(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, BadRequest> {
    let name = match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    };
    if name.trim().is_empty() {
        Err(BadRequest::ModelMissing)
    } else {
        Ok(name)
    }
}

impl ModelRequest<'_> {
    /// Whether the client itself asked for a usage event at the end of the stream
    /// (`stream_options.include_usage` is `true`).
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        self.spot.wants_usage()
    }

    /// What changes in the body on its way to a pod: the model's name when `upstream_model` is another one, and with
    /// `want_usage` the wish for a usage event, where the API has one and the request is a stream.
    #[must_use]
    pub fn edits(&self, upstream_model: Option<&str>, want_usage: bool) -> Edits {
        let name = upstream_model.filter(|name| *name != self.model);
        self.spot.edits(
            name,
            want_usage && self.stream && self.api.has_stream_options(),
        )
    }
}
