//! `/v1/completions`.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::answer::{Answer, data, done};
use crate::live::core::Progress;

pub(super) fn event(answer: &mut Answer, progress: &Progress, out: &mut VecDeque<String>) {
    let index = progress.choice;
    let text = answer.delta(progress);
    let finish = answer.finish_reason(index);
    let choice = json!({
        "index": index, "text": text, "logprobs": null, "finish_reason": finish,
        "stop_reason": answer.stop_reason(index), "prompt_token_ids": null, "token_ids": null,
    });
    let mut chunk = chunk(answer, &json!([choice]));
    if answer.request.continuous_usage {
        chunk["usage"] = answer.usage(answer.generated());
    }
    if finish.is_some() && !answer.request.include_usage {
        chunk["system_fingerprint"] = json!(answer.fingerprint);
    }
    out.push_back(data(&chunk));
}

pub(super) fn close(answer: &Answer, out: &mut VecDeque<String>) {
    if answer.request.include_usage {
        let mut chunk = chunk(answer, &json!([]));
        let mut usage = answer.usage(answer.generated());
        if answer.details {
            usage["prompt_tokens_details"] = json!({"cached_tokens": answer.cached_first()});
        }
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
                "index": index, "text": answer.text(index), "logprobs": null,
                "finish_reason": answer.finish_reason(index), "stop_reason": answer.stop_reason(index),
                "token_ids": null, "prompt_logprobs": null, "prompt_token_ids": null, "routed_experts": null,
            })
        })
        .collect();
    let mut usage = answer.usage(answer.generated());
    usage["prompt_tokens_details"] = Value::Null;
    if answer.details {
        usage["prompt_tokens_details"] = json!({"cached_tokens": answer.cached_last(), "created_cache_tokens": null, "multimodal_tokens": null});
    }
    usage["completion_tokens_details"] = Value::Null;
    json!({
        "id": format!("cmpl-{}", answer.id), "object": "text_completion", "created": answer.created,
        "model": answer.request.model, "choices": choices, "service_tier": null,
        "system_fingerprint": answer.fingerprint, "usage": usage, "kv_transfer_params": null,
        "ec_transfer_params": null, "metrics": null,
    })
}

fn chunk(answer: &Answer, choices: &Value) -> Value {
    json!({
        "id": format!("cmpl-{}", answer.id), "object": "text_completion", "created": answer.created,
        "model": answer.request.model, "choices": choices,
    })
}
