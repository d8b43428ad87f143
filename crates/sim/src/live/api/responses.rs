//! `/v1/responses`.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::answer::{Answer, named};
use crate::{live::core::Progress, model::FinishReason};

/// The two events that precede the first token.
pub(super) fn open(answer: &mut Answer, out: &mut VecDeque<String>) {
    for name in ["response.created", "response.in_progress"] {
        let response = response(answer, "in_progress", &json!([]), &Value::Null);
        push(answer, out, name, json!({"response": response}));
    }
}

pub(super) fn event(answer: &mut Answer, progress: &Progress, out: &mut VecDeque<String>) {
    let item = item_id(answer);
    if progress.token == Some(0) {
        let message = json!({
            "id": item, "content": [], "role": "assistant", "status": "in_progress", "type": "message", "phase": null,
        });
        push(
            answer,
            out,
            "response.output_item.added",
            json!({"item": message, "output_index": 0}),
        );
        let part = json!({"annotations": [], "text": "", "type": "output_text", "logprobs": []});
        push(
            answer,
            out,
            "response.content_part.added",
            json!({
                "content_index": 0, "item_id": item, "output_index": 0, "part": part,
            }),
        );
    }
    let delta = answer.delta(progress);
    if !delta.is_empty() {
        push(
            answer,
            out,
            "response.output_text.delta",
            json!({
                "content_index": 0, "delta": delta, "item_id": item, "logprobs": [], "output_index": 0,
            }),
        );
    }
}

pub(super) fn close(answer: &mut Answer, out: &mut VecDeque<String>) {
    let (item, text) = (item_id(answer), answer.text(0));
    push(
        answer,
        out,
        "response.output_text.done",
        json!({
            "content_index": 0, "item_id": item, "logprobs": [], "output_index": 0, "text": text,
        }),
    );
    let part = part(answer);
    push(
        answer,
        out,
        "response.content_part.done",
        json!({
            "content_index": 0, "item_id": item, "output_index": 0, "part": part,
        }),
    );
    let message = message(answer);
    push(
        answer,
        out,
        "response.output_item.done",
        json!({"item": message, "output_index": 0}),
    );
    let response = whole(answer);
    push(
        answer,
        out,
        "response.completed",
        json!({"response": response}),
    );
}

pub(super) fn whole(answer: &Answer) -> Value {
    let status = match answer.tallies[0].finish {
        Some(FinishReason::Stop) => "completed",
        _ => "incomplete",
    };
    let usage = json!({
        "input_tokens": answer.request.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": answer.cached_first(), "cache_write_tokens": answer.written(),
            "input_tokens_per_turn": [], "cached_tokens_per_turn": [],
        },
        "output_tokens": answer.generated(),
        "output_tokens_details": {
            "reasoning_tokens": 0, "tool_output_tokens": 0, "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": answer.request.prompt_tokens + answer.generated(),
    });
    response(answer, status, &json!([message(answer)]), &usage)
}

/// Numbers an event and writes its fields in alphabetical order, as recorded.
fn push(answer: &mut Answer, out: &mut VecDeque<String>, name: &str, mut fields: Value) {
    fields["sequence_number"] = json!(answer.sequence);
    fields["type"] = json!(name);
    if let Some(fields) = fields.as_object_mut() {
        fields.sort_keys();
    }
    answer.sequence += 1;
    out.push_back(named(name, &fields));
}

fn item_id(answer: &Answer) -> String {
    format!("msg_{}", answer.id)
}

fn part(answer: &Answer) -> Value {
    json!({"annotations": [], "text": answer.text(0), "type": "output_text", "logprobs": null})
}

fn message(answer: &Answer) -> Value {
    json!({
        "id": item_id(answer), "content": [part(answer)], "role": "assistant", "status": "completed",
        "type": "message", "phase": null,
    })
}

fn response(answer: &Answer, status: &str, output: &Value, usage: &Value) -> Value {
    let request = &answer.request;
    let incomplete = match answer.tallies[0].finish {
        Some(FinishReason::Length) => json!({"reason": "max_output_tokens"}),
        _ => Value::Null,
    };
    json!({
        "id": format!("resp_{}", answer.id), "created_at": answer.created, "incomplete_details": incomplete,
        "instructions": request.instructions, "metadata": null, "model": request.model, "object": "response",
        "output": output, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "none", "tools": [],
        "top_p": 1.0, "background": false, "max_output_tokens": request.max_tokens, "max_tool_calls": null,
        "previous_response_id": null, "prompt": null, "reasoning": null, "service_tier": "auto", "status": status,
        "text": null, "top_logprobs": null, "truncation": "disabled", "usage": usage, "user": null,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "kv_transfer_params": null, "ec_transfer_params": null,
        "input_messages": null, "output_messages": null,
    })
}
