//! One HTTP request: path, method, answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;

use super::{
    api::{Answer, Api, ApiError, Generate, Shape, count_tokens, models, tokenize},
    body::{Body, Events, events, json as json_response, response},
    core::Core,
    pd::{CLAIM_PATH, Leg, serve_claim},
};
use crate::rng::Rng;

/// What a path stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Generate(Api),
    Models,
    Health,
    Ping,
    Version,
    Load,
    Metrics,
    KvEventSources,
    Tokenize,
    CountTokens,
    ResetPrefixCache,
    Claim,
}

fn endpoint(path: &str) -> Option<Endpoint> {
    Some(match path {
        "/v1/chat/completions" => Endpoint::Generate(Api::Chat),
        "/v1/completions" => Endpoint::Generate(Api::Completions),
        "/v1/responses" => Endpoint::Generate(Api::Responses),
        "/v1/messages" => Endpoint::Generate(Api::Messages),
        "/v1/messages/count_tokens" => Endpoint::CountTokens,
        "/v1/models" => Endpoint::Models,
        "/health" => Endpoint::Health,
        "/ping" => Endpoint::Ping,
        "/version" => Endpoint::Version,
        "/load" => Endpoint::Load,
        "/metrics" => Endpoint::Metrics,
        "/kv_event_sources" => Endpoint::KvEventSources,
        "/tokenize" => Endpoint::Tokenize,
        "/reset_prefix_cache" => Endpoint::ResetPrefixCache,
        CLAIM_PATH => Endpoint::Claim,
        _ => return None,
    })
}

impl Endpoint {
    fn allows(self, method: &Method) -> bool {
        match self {
            Self::Generate(_)
            | Self::Tokenize
            | Self::CountTokens
            | Self::ResetPrefixCache
            | Self::Claim => method == Method::POST,
            Self::Ping => method == Method::GET || method == Method::POST,
            _ => method == Method::GET,
        }
    }

    fn allowed(self) -> &'static str {
        if self.allows(&Method::POST) {
            "POST"
        } else {
            "GET"
        }
    }

    fn shape(self) -> Shape {
        match self {
            Self::Generate(Api::Messages) | Self::CountTokens => Shape::Anthropic,
            _ => Shape::OpenAi,
        }
    }
}

/// Answers one request.
pub(super) async fn answer(core: &Arc<Core>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    let Some(endpoint) = endpoint(path) else {
        return redirect(&request).unwrap_or_else(|| {
            ApiError::detail(StatusCode::NOT_FOUND, "Not Found").into_response(Shape::Detail)
        });
    };
    if !endpoint.allows(request.method()) {
        let error = ApiError::detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        let mut response = error.into_response(Shape::Detail);
        response
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static(endpoint.allowed()));
        return response;
    }
    match serve(core, endpoint, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(endpoint.shape()),
    }
}

async fn serve(
    core: &Arc<Core>,
    endpoint: Endpoint,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let options = &core.options;
    let max_model_len = core.max_model_len;
    let ok = |value| Ok(json_response(StatusCode::OK, &value));
    match endpoint {
        Endpoint::Generate(api) => generate(core, api, request).await,
        Endpoint::Models => ok(models(options, max_model_len, core.created as u64)),
        Endpoint::Health | Endpoint::Ping => Ok(response(StatusCode::OK, None, Bytes::new())),
        Endpoint::Version => ok(json!({"version": super::VERSION})),
        Endpoint::Load => {
            let load = core.load();
            ok(json!({"server_load": load.running + load.waiting}))
        }
        Endpoint::Metrics => Ok(response(
            StatusCode::OK,
            Some("text/plain; version=1.0.0; charset=utf-8"),
            Bytes::from(core.metrics_page()),
        )),
        Endpoint::KvEventSources => ok(json!({})),
        Endpoint::Tokenize => {
            let (parts, body) = read(request).await?;
            ok(tokenize(&parts.headers, &body, options, max_model_len)?)
        }
        Endpoint::CountTokens => {
            let (parts, body) = read(request).await?;
            ok(count_tokens(&parts.headers, &body, options)?)
        }
        Endpoint::ResetPrefixCache => ok(json!({"success": core.reset_prefix_cache()})),
        Endpoint::Claim => {
            let (_, body) = read(request).await?;
            let (status, answer) = serve_claim(&core.transfers, &body).await;
            Ok(json_response(status, &answer))
        }
    }
}

async fn read(request: Request<Incoming>) -> Result<(http::request::Parts, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    // A body that breaks off has no one left to read the answer.
    let body = body
        .collect()
        .await
        .map_err(|_| ApiError::detail(StatusCode::BAD_REQUEST, "Disconnected"))?;
    Ok((parts, body.to_bytes()))
}

async fn generate(
    core: &Arc<Core>,
    api: Api,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let (parts, body) = read(request).await?;
    let mut request = Generate::parse(
        api,
        &parts.headers,
        &body,
        &core.options,
        core.max_model_len,
    )?;
    let leg = match &core.options.disaggregation {
        Some(part) => Some(Leg::begin(part, &core.transfers, &body, &mut request).await?),
        None => None,
    };
    let id = parts
        .headers
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let (ticket, mut receiver) = core
        .submit(request.submissions())
        .map_err(ApiError::rejected)?;
    let id = id.unwrap_or_else(|| {
        format!(
            "{:016x}",
            Rng::new(core.options.seed).fork(ticket.number()).next_u64()
        )
    });
    let make = |request| {
        let created = core.now_since_1970();
        Answer::new(
            request,
            id,
            created,
            core.fingerprint(),
            core.options.prompt_tokens_details,
            core.block_size,
        )
    };
    if request.stream {
        return Ok(events(Events::new(request, make, receiver, ticket)));
    }
    let mut answer = make(request);
    while !answer.complete() {
        match receiver.recv().await {
            Some(progress) => answer.advance(&progress),
            None => break,
        }
    }
    let mut whole = answer.whole();
    if let Some(leg) = leg {
        // Unique for the engine, and beyond what floating point can hold.
        let key = u64::MAX - ticket.number();
        leg.finish(&core.transfers, key, core.address, &mut whole)
            .await?;
    }
    drop(ticket);
    Ok(json_response(StatusCode::OK, &whole))
}

/// A known path with a slash behind it is redirected to the one without, absolute as the Host header says.
fn redirect(request: &Request<Incoming>) -> Option<Response<Body>> {
    let path = request.uri().path().strip_suffix('/')?;
    endpoint(path)?;
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    let location = HeaderValue::from_str(&format!("http://{host}{path}")).ok()?;
    let mut redirect = response(StatusCode::TEMPORARY_REDIRECT, None, Bytes::new());
    redirect.headers_mut().insert(header::LOCATION, location);
    Some(redirect)
}
