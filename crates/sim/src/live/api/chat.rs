//! `/v1/chat/completions`.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::answer::{Answer, data, done};
use crate::live::core::Progress;

pub(super) fn event(answer: &mut Answer, progress: &Progress, out: &mut VecDeque<String>) {
    // The role comes with the first token of any choice, for all choices.
    if answer.sequence == 0 {
        answer.sequence = 1;
        for index in 0..answer.request.choices.len() {
            let choice = json!({
                "index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null,
            });
            let mut chunk = chunk(answer, &json!([choice]));
            continuous_usage(answer, &mut chunk, 0);
            chunk["prompt_token_ids"] = Value::Null;
            chunk["prompt_text"] = Value::Null;
            out.push_back(data(&chunk));
        }
    }
    let index = progress.choice;
    let content = answer.delta(progress);
    let finish = answer.finish_reason(index);
    let mut choice = json!({"index": index, "delta": {"content": content}, "logprobs": null, "finish_reason": finish});
    if finish.is_some() {
        choice["stop_reason"] = json!(answer.stop_reason(index));
    }
    choice["token_ids"] = Value::Null;
    let mut chunk = chunk(answer, &json!([choice]));
    continuous_usage(answer, &mut chunk, answer.generated());
    if finish.is_some() && !answer.request.include_usage {
        chunk["system_fingerprint"] = json!(answer.fingerprint);
    }
    out.push_back(data(&chunk));
}

pub(super) fn close(answer: &Answer, out: &mut VecDeque<String>) {
    if answer.request.include_usage {
        let mut usage = answer.usage(answer.generated());
        if answer.details {
            usage["prompt_tokens_details"] = json!({"cached_tokens": answer.cached_first(), "created_cache_tokens": answer.written()});
        }
        let mut chunk = chunk(answer, &json!([]));
        chunk["usage"] = usage;
        chunk["system_fingerprint"] = json!(answer.fingerprint);
        out.push_back(data(&chunk));
    }
    out.push_back(done());
}

pub(super) fn whole(answer: &Answer) -> Value {
    let choices: Vec<Value> = (0..answer.request.choices.len())
        .map(|index| {
            json!({
                "index": index,
                "message": {
                    "role": "assistant", "content": answer.text(index), "refusal": null, "annotations": null,
                    "audio": null, "function_call": null, "reasoning": null,
                },
                "logprobs": null, "finish_reason": answer.finish_reason(index),
                "stop_reason": answer.stop_reason(index), "token_ids": null, "routed_experts": null,
            })
        })
        .collect();
    let mut usage = answer.usage(answer.generated());
    usage["prompt_tokens_details"] = Value::Null;
    if answer.details {
        usage["prompt_tokens_details"] = json!({
            "cached_tokens": answer.cached_last(), "created_cache_tokens": answer.written(), "multimodal_tokens": null,
        });
    }
    usage["completion_tokens_details"] = Value::Null;
    json!({
        "id": format!("chatcmpl-{}", answer.id), "object": "chat.completion", "created": answer.created,
        "model": answer.request.model, "choices": choices, "service_tier": null,
        "system_fingerprint": answer.fingerprint, "usage": usage, "prompt_logprobs": null, "prompt_token_ids": null,
        "prompt_text": null, "kv_transfer_params": null, "ec_transfer_params": null, "metrics": null,
    })
}

fn chunk(answer: &Answer, choices: &Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id), "object": "chat.completion.chunk", "created": answer.created,
        "model": answer.request.model, "choices": choices,
    })
}

fn continuous_usage(answer: &Answer, chunk: &mut Value, generated: usize) {
    if answer.request.continuous_usage {
        let mut usage = answer.usage(generated);
        usage["completion_tokens_details"] = Value::Null;
        chunk["usage"] = usage;
    }
}
