//! From a request's bytes to what the engine shall generate.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    error::ApiError,
    field::{Fields, content_text, fields, flag, integer, missing, not_a_list, string},
};
use crate::{
    live::LiveOptions,
    model::{FinishReason, RequestId, Submission},
    rng::Rng,
    tokens::{self, ChatTokens, VOCABULARY},
    words::Prose,
};

/// Most answers to one prompt; more would only fill the memory.
const MAX_CHOICES: i64 = 128;

/// The API that a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
}

/// One answer to be generated.
#[derive(Clone, Debug)]
pub(in crate::live) struct Choice {
    pub(in crate::live) prompt: Vec<u32>,
    /// Text of each token.
    pub(super) pieces: Vec<String>,
    pub(super) finish: FinishReason,
    /// The stop string that ended it.
    pub(super) stop_reason: Option<String>,
    /// Bytes of text that a stop string takes back from the end.
    pub(super) withheld: usize,
    /// What `echo` puts before the answer.
    pub(super) echo: String,
}

/// A valid request.
#[derive(Clone, Debug)]
pub(in crate::live) struct Generate {
    pub(in crate::live) api: Api,
    /// Name to answer with.
    pub(super) model: String,
    pub(in crate::live) choices: Vec<Choice>,
    pub(in crate::live) stream: bool,
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
    /// Tokens of all prompts; several choices of one prompt count once.
    pub(super) prompt_tokens: usize,
    pub(super) instructions: Value,
    pub(super) max_tokens: Value,
    salt: u64,
    /// The prompt was computed by a prefill engine.
    pub(in crate::live) transferred: bool,
}

impl Generate {
    /// The choices as the engine takes them.
    pub(in crate::live) fn submissions(&self) -> impl Iterator<Item = Submission> {
        self.choices.iter().map(|choice| Submission {
            id: RequestId(0),
            prompt: choice.prompt.clone(),
            answer: choice
                .pieces
                .iter()
                .flat_map(|piece| tokens::encode(piece))
                .collect(),
            finish: choice.finish,
            salt: self.salt,
            transferred: self.transferred,
        })
    }

    /// Whether every answer is one token.
    pub(in crate::live) fn is_one_token(&self) -> bool {
        self.choices.iter().all(|choice| choice.pieces.len() == 1)
    }

    /// A digest of all prompts.
    pub(in crate::live) fn digest(&self) -> u64 {
        let tokens = self.choices.iter().flat_map(|choice| &choice.prompt);
        let bytes: Vec<u8> = tokens.flat_map(|token| token.to_le_bytes()).collect();
        xxh3_64(&bytes)
    }

    /// Reads and checks a request.
    pub(in crate::live) fn parse(
        api: Api,
        headers: &HeaderMap,
        body: &Bytes,
        options: &LiveOptions,
        max_model_len: usize,
    ) -> Result<Self, ApiError> {
        media_type(headers)?;
        let fields = fields(body)?;
        let model = string(&fields, "model")?.unwrap_or_default();
        let prompts = prompts(api, &fields)?;
        if api == Api::Messages && !fields.contains_key("max_tokens") {
            return Err(missing(&fields, "max_tokens"));
        }
        let limit = limit(api, &fields)?;
        let stream = flag(&fields, "stream")?;
        check_model(model, options)?;
        if prompts.is_empty() {
            return Err(ApiError::bad_request(
                "You must pass at least one prompt",
                None,
            ));
        }
        let n = integer(&fields, "n")?.unwrap_or(1);
        if n < 1 {
            return Err(ApiError::bad_request(
                format!("n must be at least 1, got {n}."),
                None,
            ));
        }
        if n > MAX_CHOICES {
            return Err(ApiError::bad_request(
                format!("n must be at most {MAX_CHOICES}, got {n}."),
                None,
            ));
        }
        if api == Api::Completions && fields.get("suffix").is_some_and(|suffix| !suffix.is_null()) {
            let message = "suffix is only supported for models with FIM completion rendering";
            return Err(ApiError::bad_request(message, Some("suffix")));
        }
        let usage = fields
            .get("stream_options")
            .filter(|value| !value.is_null());
        if usage.is_some() && !stream {
            return Err(ApiError::bad_request(
                "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
                Some("stream_options"),
            ));
        }
        let usage_flag = |name| {
            usage
                .and_then(|value| value.get(name))
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        let limit = check_limit(limit, max_model_len)?;
        let plan = Plan::read(api, &fields, limit, options, max_model_len)?;
        let mut prompt_tokens = 0;
        let mut choices = Vec::new();
        for prompt in prompts {
            if prompt.tokens.len() >= max_model_len {
                return Err(ApiError::prompt_too_long(
                    max_model_len,
                    prompt.tokens.len(),
                    prompt.counted_whole,
                ));
            }
            prompt_tokens += prompt.tokens.len();
            for _ in 0..n {
                choices.push(plan.choice(&prompt, choices.len()));
            }
        }
        let limit_name = if api == Api::Responses {
            "max_output_tokens"
        } else {
            "max_tokens"
        };
        Ok(Self {
            api,
            model: if model.is_empty() {
                options.first_name()
            } else {
                model
            }
            .to_owned(),
            choices,
            stream,
            include_usage: usage_flag("include_usage"),
            continuous_usage: usage_flag("include_usage") && usage_flag("continuous_usage_stats"),
            prompt_tokens,
            instructions: fields.get("instructions").cloned().unwrap_or(Value::Null),
            max_tokens: fields.get(limit_name).cloned().unwrap_or(Value::Null),
            salt: string(&fields, "cache_salt")?.map_or(0, |salt| xxh3_64(salt.as_bytes())),
            transferred: false,
        })
    }
}

/// The tokens that `/tokenize` and `/v1/messages/count_tokens` answer with.
pub(super) fn prompt_of(fields: &Fields, api: Api) -> Result<Vec<u32>, ApiError> {
    let mut prompts = prompts(api, fields)?;
    Ok(prompts
        .drain(..)
        .next()
        .map(|prompt| prompt.tokens)
        .unwrap_or_default())
}

/// Reads the fields of a JSON request that generates nothing.
pub(super) fn small_request(
    headers: &HeaderMap,
    body: &Bytes,
    options: &LiveOptions,
) -> Result<Fields, ApiError> {
    media_type(headers)?;
    let fields = fields(body)?;
    check_model(string(&fields, "model")?.unwrap_or_default(), options)?;
    Ok(fields)
}

fn media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let given = headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(ApiError::media_type())
    }
}

fn check_model(model: &str, options: &LiveOptions) -> Result<(), ApiError> {
    if model.is_empty() || options.model_names.iter().any(|name| name == model) {
        return Ok(());
    }
    Err(ApiError::unknown_model(model, &options.model_names))
}

struct Prompt {
    tokens: Vec<u32>,
    /// The text, for `echo`; empty for token ids.
    text: String,
    counted_whole: bool,
}

fn prompts(api: Api, fields: &Fields) -> Result<Vec<Prompt>, ApiError> {
    let chat = |chat: ChatTokens| {
        vec![Prompt {
            tokens: chat.for_answer(),
            text: String::new(),
            counted_whole: false,
        }]
    };
    match api {
        Api::Completions => completion_prompts(fields.get("prompt")),
        Api::Chat | Api::Messages => {
            let messages = match fields.get("messages") {
                None => return Err(missing(fields, "messages")),
                Some(Value::Array(messages)) => messages,
                Some(other) => return Err(not_a_list("messages", other)),
            };
            if messages.is_empty() {
                return Err(ApiError::bad_request(
                    "Cannot apply chat template to an empty conversation. Provide at least one message.",
                    None,
                ));
            }
            let mut tokens = ChatTokens::default();
            if let Some(system) = fields.get("system").filter(|value| !value.is_null()) {
                tokens.message("system", &content_text(Some(system)));
            }
            add_messages(&mut tokens, messages);
            Ok(chat(tokens))
        }
        Api::Responses => {
            let mut tokens = ChatTokens::default();
            if let Some(instructions) = string(fields, "instructions")? {
                tokens.message("developer", instructions);
            }
            match fields.get("input") {
                None => {
                    // The real engine has filled in one field of its own by then.
                    let input = format!("<dict of {} items>", fields.len() + 1);
                    return Err(ApiError::schema(
                        "missing",
                        "body.input",
                        "Field required",
                        &input,
                    ));
                }
                Some(Value::Array(items)) => add_messages(&mut tokens, items),
                Some(input) => tokens.message("user", &content_text(Some(input))),
            }
            Ok(chat(tokens))
        }
    }
}

fn add_messages(tokens: &mut ChatTokens, messages: &[Value]) {
    for message in messages {
        // Items of a Responses input that are no messages (tool calls, reasoning) have no role.
        if let Some(role) = message.get("role").and_then(Value::as_str) {
            tokens.message(role, &content_text(message.get("content")));
        }
    }
}

fn completion_prompts(prompt: Option<&Value>) -> Result<Vec<Prompt>, ApiError> {
    let empty = || {
        ApiError::bad_request(
            "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
            Some("prompt"),
        )
    };
    let text = |text: &str| Prompt {
        tokens: tokens::encode(text),
        text: text.to_owned(),
        counted_whole: true,
    };
    match prompt {
        None | Some(Value::Null) => Err(empty()),
        Some(Value::String(prompt)) if prompt.is_empty() => Err(empty()),
        Some(Value::String(prompt)) => Ok(vec![text(prompt)]),
        Some(Value::Array(items)) if items.first().is_some_and(Value::is_number) => {
            Ok(vec![token_ids(items)?])
        }
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| match item {
                Value::String(prompt) if !prompt.is_empty() => Ok(text(prompt)),
                Value::Array(ids) if !ids.is_empty() => token_ids(ids),
                _ => Err(empty()),
            })
            .collect(),
        Some(_) => Err(empty()),
    }
}

fn token_ids(items: &[Value]) -> Result<Prompt, ApiError> {
    let ids = items.iter().map(|item| {
        let id = item
            .as_u64()
            .and_then(|id| u32::try_from(id).ok())
            .filter(|&id| id < VOCABULARY);
        id.ok_or_else(|| {
            ApiError::bad_request(format!("Token id {item} is out of vocabulary"), None)
        })
    });
    Ok(Prompt {
        tokens: ids.collect::<Result<_, _>>()?,
        text: String::new(),
        counted_whole: true,
    })
}

/// The limit of tokens that the request sets, and the name of its field.
fn limit(api: Api, fields: &Fields) -> Result<Option<i64>, ApiError> {
    match api {
        Api::Chat => {
            Ok(integer(fields, "max_completion_tokens")?.or(integer(fields, "max_tokens")?))
        }
        Api::Completions | Api::Messages => integer(fields, "max_tokens"),
        Api::Responses => integer(fields, "max_output_tokens"),
    }
}

fn check_limit(limit: Option<i64>, max_model_len: usize) -> Result<Option<usize>, ApiError> {
    let Some(limit) = limit else { return Ok(None) };
    match usize::try_from(limit) {
        Ok(limit) if limit > max_model_len => Err(ApiError::bad_value(
            &format!(
                "max_tokens={limit} cannot be greater than max_model_len={max_model_len}. Please request fewer output tokens."
            ),
            "max_tokens",
            limit,
        )),
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(ApiError::bad_value(
            &format!("max_tokens must be at least 1, got {limit}."),
            "max_tokens",
            limit,
        )),
    }
}

/// How long the answers get and where they stop.
struct Plan<'a> {
    limit: Option<usize>,
    stops: Vec<String>,
    echo: bool,
    options: &'a LiveOptions,
    max_model_len: usize,
}

impl<'a> Plan<'a> {
    fn read(
        api: Api,
        fields: &Fields,
        limit: Option<usize>,
        options: &'a LiveOptions,
        max_model_len: usize,
    ) -> Result<Self, ApiError> {
        /// What the real engine generates for a completion without a limit.
        const COMPLETION_DEFAULT: usize = 16;
        let name = if api == Api::Messages {
            "stop_sequences"
        } else {
            "stop"
        };
        let stops = match fields.get(name) {
            Some(Value::String(stop)) => vec![stop.clone()],
            Some(Value::Array(stops)) => stops
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            limit: limit.or((api == Api::Completions).then_some(COMPLETION_DEFAULT)),
            stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(),
            echo: flag(fields, "echo")?,
            options,
            max_model_len,
        })
    }

    fn choice(&self, prompt: &Prompt, index: usize) -> Choice {
        let bytes: Vec<u8> = prompt
            .tokens
            .iter()
            .flat_map(|token| token.to_le_bytes())
            .collect();
        let seed = self.options.seed ^ xxh3_64(&bytes) ^ (index as u64).rotate_left(32);
        let room = self.max_model_len - prompt.tokens.len();
        let (wanted, finish) = match self.limit {
            Some(limit) => (limit, FinishReason::Length),
            None => {
                let (low, high) = self.options.answer_tokens;
                (Rng::new(seed).between(low, high).max(1), FinishReason::Stop)
            }
        };
        // The window is full before the wanted length.
        let (wanted, finish) = if wanted > room {
            (room, FinishReason::Length)
        } else {
            (wanted, finish)
        };
        let mut choice = Choice {
            prompt: prompt.tokens.clone(),
            pieces: Vec::with_capacity(wanted),
            finish,
            stop_reason: None,
            withheld: 0,
            echo: if self.echo {
                prompt.text.clone()
            } else {
                String::new()
            },
        };
        let mut prose = Prose::new(seed);
        let mut text = String::new();
        for _ in 0..wanted {
            let piece = prose.next_piece();
            text.push_str(&piece);
            choice.pieces.push(piece);
            let hit = self
                .stops
                .iter()
                .find_map(|stop| text.find(stop.as_str()).map(|at| (at, stop)));
            if let Some((at, stop)) = hit {
                choice.withheld = text.len() - at;
                choice.finish = FinishReason::Stop;
                choice.stop_reason = Some(stop.clone());
                break;
            }
        }
        choice
    }
}
