//! `/v1/messages`, Anthropic's API.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::answer::{Answer, named};
use crate::{live::core::Progress, model::FinishReason};

pub(super) fn event(answer: &mut Answer, progress: &Progress, out: &mut VecDeque<String>) {
    if answer.sequence == 0 {
        answer.sequence = 1;
        let message = json!({
            "id": id(answer), "type": "message", "role": "assistant", "content": [], "model": answer.request.model,
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": answer.request.prompt_tokens, "output_tokens": 0},
        });
        out.push_back(named(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        ));
        out.push_back(named("content_block_start", &json!({
            "type": "content_block_start", "content_block": {"type": "text", "text": ""}, "index": 0,
        })));
    }
    let text = answer.delta(progress);
    if !text.is_empty() {
        out.push_back(named("content_block_delta", &json!({
            "type": "content_block_delta", "delta": {"type": "text_delta", "text": text}, "index": 0,
        })));
    }
}

pub(super) fn close(answer: &Answer, out: &mut VecDeque<String>) {
    out.push_back(named(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": 0}),
    ));
    out.push_back(named(
        "message_delta",
        &json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(answer), "stop_sequence": answer.stop_reason(0)},
            "usage": usage(answer),
        }),
    ));
    out.push_back(named("message_stop", &json!({"type": "message_stop"})));
}

pub(super) fn whole(answer: &Answer) -> Value {
    json!({
        "id": id(answer), "type": "message", "role": "assistant",
        "content": [{"type": "text", "text": answer.text(0)}], "model": answer.request.model,
        "stop_reason": stop_reason(answer), "usage": usage(answer),
    })
}

fn id(answer: &Answer) -> String {
    format!("chatcmpl-{}", answer.id)
}

fn stop_reason(answer: &Answer) -> Option<&'static str> {
    match answer.tallies[0].finish {
        Some(FinishReason::Length) => Some("max_tokens"),
        Some(FinishReason::Stop) if answer.stop_reason(0).is_some() => Some("stop_sequence"),
        Some(FinishReason::Stop) => Some("end_turn"),
        // Not recorded; the API has no word for it.
        Some(FinishReason::Abort) | None => None,
    }
}

/// With details, `input_tokens` is what was not read from the cache.
fn usage(answer: &Answer) -> Value {
    let prompt = answer.request.prompt_tokens;
    let generated = answer.generated();
    if !answer.details {
        return json!({"input_tokens": prompt, "output_tokens": generated});
    }
    let cached = answer.cached_first();
    json!({
        "input_tokens": prompt - cached, "output_tokens": generated, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    })
}
