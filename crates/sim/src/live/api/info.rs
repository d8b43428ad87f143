//! Requests that generate nothing: models, token counts.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

use super::{
    error::ApiError,
    request::{Api, prompt_of, small_request},
};
use crate::live::LiveOptions;

/// `GET /v1/models`; `created` in seconds since 1970.
pub(in crate::live) fn models(options: &LiveOptions, max_model_len: usize, created: u64) -> Value {
    let data: Vec<Value> = options
        .model_names
        .iter()
        .map(|name| {
            json!({
                "id": name, "object": "model", "created": created, "owned_by": "vllm", "root": name, "parent": null,
                "max_model_len": max_model_len,
                "permission": [{
                    "id": format!("modelperm-{name}"), "object": "model_permission", "created": created,
                    "allow_create_engine": false, "allow_sampling": true, "allow_logprobs": true,
                    "allow_search_indices": false, "allow_view": true, "allow_fine_tuning": false,
                    "organization": "*", "group": null, "is_blocking": false,
                }],
            })
        })
        .collect();
    json!({"object": "list", "data": data})
}

/// `POST /tokenize`.
pub(in crate::live) fn tokenize(
    headers: &HeaderMap,
    body: &Bytes,
    options: &LiveOptions,
    max_model_len: usize,
) -> Result<Value, ApiError> {
    let fields = small_request(headers, body, options)?;
    let api = if fields.contains_key("messages") {
        Api::Chat
    } else {
        Api::Completions
    };
    let tokens = prompt_of(&fields, api)?;
    Ok(
        json!({"count": tokens.len(), "max_model_len": max_model_len, "tokens": tokens, "token_strs": null}),
    )
}

/// `POST /v1/messages/count_tokens`.
pub(in crate::live) fn count_tokens(
    headers: &HeaderMap,
    body: &Bytes,
    options: &LiveOptions,
) -> Result<Value, ApiError> {
    let fields = small_request(headers, body, options)?;
    let count = prompt_of(&fields, Api::Messages)?.len();
    Ok(json!({"input_tokens": count, "context_management": {"original_input_tokens": count}}))
}
