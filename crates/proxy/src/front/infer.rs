//! The straight line of an inference request: read, extract, route, plan, forward, relay.

use super::decode::Coding;
use super::headers::{for_pod, one_host, strip_hop_by_hop};
use super::infer_one::One;
use super::infer_pair::{InPair, Load};
use super::keep::{Chosen, Way, choose, keep};
use super::read::linger;
use super::{ClientBody, read_body};
use crate::app::App;
use crate::error::Refusal;
use crate::forward::Answer;
use crate::insight::X_DECISION;
use crate::record::Record;
use crate::recording::Recorder;
use crate::relay::{RelayBody, Watch};
use crate::sticky::Session;
use crate::upstream::{Head, Payload};
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue,
};
use http::request::Parts;
use http::{HeaderMap, Request, Response, Uri, Version};
use hyper::body::Incoming;
use routing::request::{Api, ModelRequest, extract};
use routing::route::route;
use routing::schedule::{Ask, Memo};
use routing::session::{Claims, KeyParts};
use std::sync::Arc;

/// Characters of a prompt that count as one token, where no tokenizer is asked.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// Names the pod that gave a response, where that is wanted.
const X_BACKEND_POD: HeaderName = HeaderName::from_static("x-kthena-backend-pod");

/// Answers an inference request.
pub(super) async fn infer(app: Arc<App>, request: Request<Incoming>) -> Response<ClientBody> {
    let (mut parts, body) = request.into_parts();
    let api = Api::of(parts.uri.path());
    let mut record = Record::start(app, api, &mut parts);
    match pass_on(&mut record, parts, body).await {
        Ok(Passed {
            mut answer,
            watch,
            memo,
        }) => {
            if record.app.settings.shows_pod
                && let Ok(name) = HeaderValue::from_str(answer.in_flight.pod().name.name())
            {
                answer.head.headers.insert(X_BACKEND_POD, name);
            }
            // It is the router's: an engine's word for it would be a forgery.
            answer.head.headers.remove(X_DECISION);
            if let Some(told) = record.told() {
                answer.head.headers.insert(X_DECISION, told);
            }
            record.responding(answer.head.status.as_u16());
            let (head, body) = RelayBody::new(answer, watch, memo, record);
            response(head, body)
        }
        Err(refusal) => {
            record.refused(&refusal);
            let mut response = refusal.response(api).map(ClientBody::from);
            if let Some(told) = record.told() {
                response.headers_mut().insert(X_DECISION, told);
            }
            response
        }
    }
}

/// A response to be relayed.
struct Passed {
    answer: Answer,
    watch: Watch,
    memo: Option<Memo>,
}

impl Passed {
    fn new(answer: Answer, hides_usage: bool, memo: Option<Memo>) -> Self {
        let headers = &answer.head.headers;
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
        let is_coded = headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
            !coding
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(b"identity")
        });
        let watch = match is_coded {
            true => Watch::Opaque,
            false => Watch::new(content_type, hides_usage),
        };
        Self {
            answer,
            watch,
            memo,
        }
    }
}

async fn pass_on(record: &mut Record, parts: Parts, body: Incoming) -> Result<Passed, Refusal> {
    let app = Arc::clone(&record.app);
    let claims = match admitted(&app, &parts.headers).await {
        Ok(claims) => claims,
        Err(refusal) => {
            linger(body);
            return Err(refusal);
        }
    };
    let body = read_body(body, app.settings.max_body).await?;
    let (plain, coded) = decoded(&parts.headers, &body, app.settings.max_body).await?;
    let request = parse(&parts, &plain)?;
    let fleet = app.fleet();
    let input_tokens = request.prompt.characters().div_ceil(CHARACTERS_PER_TOKEN);
    record.parsed(
        &request.model,
        fleet.known_model(&request.model),
        input_tokens,
    );

    let draw = crate::rand::bits();
    let routed = route(
        &fleet,
        &request.model,
        parts.uri.path(),
        &parts.headers,
        draw,
    )
    .map_err(Refusal::Route)?;
    if routed.server.pods().is_empty() {
        return Err(Refusal::NoPods(routed.server.name.clone()));
    }
    record.sample(&request.prompt);
    // What is no JSON object is a form.
    if app.recorder.as_ref().is_some_and(Recorder::is_open)
        && plain.trim_ascii_start().first() == Some(&b'{')
    {
        record.trail.body = Some(plain.clone());
    }
    let key_parts = KeyParts {
        headers: &parts.headers,
        query: parts.uri.query(),
        claims: claims.as_ref(),
    };
    // Boxed, as every wait that most requests have not: they do not carry its room.
    let session = match &routed.server.policy.session_sticky {
        None => None,
        Some(sticky) => Box::pin(Session::find(&app, routed.server, sticky, key_parts)).await,
    };
    let adds_usage = !request.wants_usage() && request.stream && request.api.has_stream_options();
    let mut head = Head {
        method: parts.method,
        uri: origin_form(&parts.uri),
        headers: for_pod(parts.headers, &parts.uri),
        once: false,
    };
    if adds_usage && head.headers.contains_key(ACCEPT_ENCODING) {
        // The usage event can be taken out of plain text only. There may be several of the header.
        let identity = HeaderValue::from_static("identity");
        head.headers.insert(ACCEPT_ENCODING, identity);
    }
    let ask = Ask {
        model: &request.model,
        prompt: &request.prompt,
        draw: crate::rand::bits(),
    };
    let server = routed.server;
    if let Some(pods) = server.disaggregated() {
        let model = routed.upstream_model;
        let load = Load::new(pods, &request, &plain, model, adds_usage, head);
        let hides_usage = load.hides_usage(adds_usage);
        let way = InPair {
            app: &app,
            server,
            pods,
            ask,
            load,
        };
        let chosen = choose(&way, session.as_ref(), record).map_err(Refusal::NoPair)?;
        record.bound(&routed);
        let (answer, memo) = Box::pin(serve(&way, session, chosen, record)).await?;
        return Ok(Passed::new(answer, hides_usage, memo));
    }
    // A body that came compressed goes on as it came, unless its model name has another spelling for the pod.
    let adds_usage = adds_usage && !coded;
    let edits = request.edits(routed.upstream_model, adds_usage);
    let hides_usage = adds_usage && !edits.is_empty();
    let mut way = One {
        app: &app,
        server,
        ask,
        head,
        payload: Payload::whole(body),
    };
    if !edits.is_empty() {
        way.head.headers.remove(CONTENT_ENCODING);
        way.payload = Payload::edited(&plain, edits);
    }
    let chosen = choose(&way, session.as_ref(), record).map_err(Refusal::Schedule)?;
    record.bound(&routed);
    let (answer, memo) = serve(&way, session, chosen, record).await?;
    Ok(Passed::new(answer, hides_usage, memo))
}

/// Asks what was chosen.
async fn serve<W: Way>(
    way: &W,
    session: Option<Session<'_>>,
    chosen: Chosen<W::Plan>,
    record: &mut Record,
) -> Result<(Answer, Option<Memo>), Refusal> {
    match session {
        None => {
            let answer = way.ask(&chosen.plan, None, record).await?;
            Ok((answer, W::memo(chosen.plan)))
        }
        Some(session) => Box::pin(keep(way, session, chosen, record)).await,
    }
}

/// What is asked of a request before a byte of its body is read. Returns the claims of its token.
pub(super) async fn admitted(app: &App, headers: &HeaderMap) -> Result<Option<Claims>, Refusal> {
    one_host(headers)?;
    authorized(app, headers).await
}

/// The claims of the client's token; `None` where tokens are not looked at.
pub(crate) async fn authorized(app: &App, headers: &HeaderMap) -> Result<Option<Claims>, Refusal> {
    match &app.auth {
        None => Ok(None),
        Some(auth) => match Box::pin(auth.check(headers)).await {
            Ok(claims) => Ok(Some(claims)),
            Err(denied) => Err(Refusal::Denied(denied)),
        },
    }
}

/// Reads the facts of a request from its plain body.
pub(crate) fn parse<'a>(parts: &Parts, body: &'a [u8]) -> Result<ModelRequest<'a>, Refusal> {
    let content_type = parts
        .headers
        .get(CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    extract(parts.uri.path(), content_type, body).map_err(Refusal::BadRequest)
}

/// The body as it reads, and whether it came in a coding.
pub(crate) async fn decoded(
    headers: &HeaderMap,
    body: &Bytes,
    limit: usize,
) -> Result<(Bytes, bool), Refusal> {
    let Some(coding) = Coding::of(headers)? else {
        return Ok((body.clone(), false));
    };
    let packed = body.clone();
    // Up to the body limit of work: not on a thread that other requests wait for.
    let plain = tokio::task::spawn_blocking(move || coding.decode(&packed, limit)).await;
    plain
        .unwrap_or_else(|_| Err(Refusal::BrokenBody("decoder stopped".into())))
        .map(|plain| (plain, true))
}

/// Path and query alone, as a server expects them.
fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query()
        .map_or_else(|| Uri::from_static("/"), |pq| Uri::from(pq.clone()))
}

fn response(head: http::response::Parts, body: RelayBody) -> Response<ClientBody> {
    let mut head = head;
    strip_hop_by_hop(&mut head.headers);
    if http_body::Body::size_hint(&body).exact().is_none() {
        head.headers.remove(CONTENT_LENGTH);
    }
    head.version = Version::HTTP_11;
    Response::from_parts(head, ClientBody::relay(body))
}
