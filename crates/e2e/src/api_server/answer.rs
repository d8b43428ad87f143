//! Answers over HTTP.

use super::fault::{Fault, Verb};
use super::selector::Selector;
use super::server::{Asked, Shared};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What cuts a connection.
#[derive(Debug)]
pub(super) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the scenario")
    }
}

impl std::error::Error for Cut {}

type Body = Either<Full<Bytes>, Channel<Bytes, Cut>>;

/// Serves connections for ever; they end with it.
pub(super) async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        connections.spawn(async move {
            match tls {
                None => serve(stream, shared).await,
                // A client that does not like the certificate leaves; that is its to say.
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(request, shared).await) }
    });
    // How a connection ends is the client's to see.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Response<Body> {
    // What only the admission webhook asks for; there is none of it.
    let path = request.uri().path();
    if path.contains("/secrets") || path.contains("/validatingwebhookconfigurations/") {
        return refusal(404, "NotFound", "not found");
    }
    let (asked, selector) = read(request).await;
    let (verb, resource) = (asked.verb, asked.resource.clone());
    shared.state().asked.push(asked.clone());
    match shared.fault(verb, &resource) {
        Fault::Refuse(code, reason, message) => refusal(code, reason, message),
        Fault::Gone if verb == Verb::List => expired(),
        Fault::Gone => watch(shared, asked, selector, Some(0), true),
        Fault::CutAfter(events) if verb == Verb::Watch => {
            watch(shared, asked, selector, Some(events), false)
        }
        Fault::CutAfter(_) => {
            let (mut sender, body) = Channel::new(1);
            tokio::spawn(async move {
                let half = Bytes::from_static(b"{\"kind\":\"List\",\"items\":[{\"meta");
                let _ = sender.send_data(half).await;
                sender.abort(Cut);
            });
            Response::new(Either::Right(body))
        }
        Fault::Unreadable => {
            let event = &b"{\"type\":\"MOVED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"[..];
            Response::new(Either::Left(Full::from(event)))
        }
        Fault::Hang => std::future::pending().await,
        Fault::Slow(gate) => {
            gate.opened().await;
            usual(shared, asked, selector)
        }
        Fault::Usual => usual(shared, asked, selector),
    }
}

fn usual(shared: Arc<Shared>, asked: Asked, selector: Selector) -> Response<Body> {
    match asked.verb {
        Verb::List => list(&shared, &asked, &selector),
        Verb::Watch => watch(shared, asked, selector, None, false),
        Verb::Write => write(&shared, &asked),
    }
}

async fn read(request: Request<Incoming>) -> (Asked, Selector) {
    let (head, body) = request.into_parts();
    let path: Vec<_> = head.uri.path().trim_matches('/').split('/').collect();
    let rest = match path.as_slice() {
        ["api", "v1", rest @ ..]
        | [
            "apis",
            "networking.serving.volcano.sh",
            "v1alpha1",
            rest @ ..,
        ] => rest,
        _ => panic!("no such path: {path:?}"),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        rest => (None, rest),
    };
    let query = decode(head.uri.query().unwrap_or_default());
    let (verb, resource, name) = match (&head.method, rest) {
        (&Method::GET, [resource]) if query.contains_key("watch") => (Verb::Watch, *resource, None),
        (&Method::GET, [resource]) => (Verb::List, *resource, None),
        (&Method::PATCH, [resource, name, "status"]) => {
            (Verb::Write, *resource, Some((*name).to_owned()))
        }
        (method, rest) => panic!("no such request: {method} {rest:?}"),
    };
    if verb == Verb::Write {
        assert_eq!(head.headers["content-type"], "application/apply-patch+yaml");
    }
    let body = body
        .collect()
        .await
        .map(|b| b.to_bytes())
        .unwrap_or_default();
    let selector = Selector {
        namespace: namespace.clone(),
        labels: query.get("labelSelector").cloned(),
        fields: query.get("fieldSelector").cloned(),
    };
    let authorization = head
        .headers
        .get("authorization")
        .and_then(|v| v.to_str().ok());
    let asked = Asked {
        verb,
        resource: resource.to_owned(),
        namespace,
        name,
        query,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        authorization: authorization.map(str::to_owned),
    };
    (asked, selector)
}

fn decode(query: &str) -> BTreeMap<String, String> {
    let text = |part: &str| {
        let mut bytes = Vec::new();
        let mut rest = part.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'+' => b' ',
                b'%' => {
                    let hex = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                    let hex = String::from_utf8_lossy(&hex).into_owned();
                    u8::from_str_radix(&hex, 16).expect("two hexadecimal digits")
                }
                other => other,
            });
        }
        String::from_utf8(bytes).expect("UTF-8")
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(k, v)| (text(k), text(v))).collect()
}

fn respond(status: u16, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Either::Left(Full::from(body.to_string())))
        .unwrap()
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "details": {"kind": "any"}, "code": code,
    })
}

fn refusal(code: u16, reason: &str, message: &str) -> Response<Body> {
    respond(code, &status(code, reason, message))
}

fn expired() -> Response<Body> {
    refusal(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result.",
    )
}

fn list(shared: &Shared, asked: &Asked, selector: &Selector) -> Response<Body> {
    let mut state = shared.state();
    let (items, version) = match asked.query.get("continue") {
        Some(token) => match state.pages.remove(token) {
            Some(page) => page,
            None => return expired(),
        },
        None => (
            state.objects.list(&asked.resource, selector),
            state.objects.version,
        ),
    };
    let limit = asked.query.get("limit").and_then(|l| l.parse().ok());
    let (page, rest) = items.split_at(items.len().min(limit.unwrap_or(usize::MAX)));
    let mut meta = json!({"resourceVersion": version.to_string()});
    if !rest.is_empty() {
        let token = format!("token-{}", state.asked.len());
        meta["continue"] = token.as_str().into();
        meta["remainingItemCount"] = rest.len().into();
        state.pages.insert(token, (rest.to_vec(), version));
    }
    respond(
        200,
        &json!({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page}),
    )
}

fn write(shared: &Shared, asked: &Asked) -> Response<Body> {
    let object = {
        let mut state = shared.state();
        let (namespace, name) = (asked.namespace.clone(), asked.name.clone());
        let key = (
            asked.resource.clone(),
            namespace.unwrap_or_default(),
            name.unwrap_or_default(),
        );
        let Some(mut object) = state.objects.all.get(&key).cloned() else {
            return refusal(404, "NotFound", "not found");
        };
        if asked.body["metadata"]["uid"] != object["metadata"]["uid"] {
            return refusal(409, "Conflict", "uid mismatch");
        }
        object["status"] = asked.body["status"].clone();
        object["metadata"]["generation"].take();
        state.objects.put(&asked.resource, object);
        state.objects.all[&key].clone()
    };
    shared.news.send_modify(|n| *n += 1);
    respond(200, &object)
}

/// A watch. With `cut` it is cut after so many events; with `gone` it says that its version is no longer known.
fn watch(
    shared: Arc<Shared>,
    asked: Asked,
    selector: Selector,
    cut: Option<usize>,
    gone: bool,
) -> Response<Body> {
    let (sender, body) = Channel::new(16);
    tokio::spawn(tell(shared, asked, selector, cut, gone, sender));
    Response::builder()
        .header("content-type", "application/json")
        .body(Either::Right(body))
        .unwrap()
}

async fn tell(
    shared: Arc<Shared>,
    asked: Asked,
    selector: Selector,
    cut: Option<usize>,
    gone: bool,
    mut sender: Sender<Bytes, Cut>,
) {
    let (mut news, mut ends) = (shared.news.subscribe(), shared.ends.subscribe());
    let mut bookmarks = shared.bookmarks.subscribe();
    let mut from: u64 = asked.query["resourceVersion"].parse().expect("a version");
    if gone || from < shared.state().objects.oldest {
        let object = status(410, "Expired", "too old resource version");
        let event = json!({"type": "ERROR", "object": object});
        let _ = sender.send_data(format!("{event}\n").into()).await;
        return;
    }
    let mut left = cut;
    loop {
        news.mark_unchanged();
        let events: Vec<_> = {
            let state = shared.state();
            let after = state.objects.history.iter().filter(|c| c.version > from);
            let events = after
                .filter_map(|c| c.event(&asked.resource, &selector))
                .collect();
            from = from.max(state.objects.version);
            events
        };
        for event in events {
            if let Some(left) = &mut left {
                if *left == 0 {
                    break;
                }
                *left -= 1;
            }
            if sender.send_data(format!("{event}\n").into()).await.is_err() {
                return;
            }
        }
        if left == Some(0) {
            // In the middle of a line.
            let _ = sender
                .send_data(Bytes::from_static(b"{\"type\":\"MODI"))
                .await;
            return sender.abort(Cut);
        }
        tokio::select! {
            _ = news.changed() => {}
            _ = ends.changed() => return,
            _ = bookmarks.changed() => {
                assert_eq!(asked.query.get("allowWatchBookmarks").map(String::as_str), Some("true"));
                let object = json!({"kind": "Any", "apiVersion": "v1", "metadata": {"resourceVersion": from.to_string(), "creationTimestamp": null}});
                let event = json!({"type": "BOOKMARK", "object": object});
                if sender.send_data(format!("{event}\n").into()).await.is_err() {
                    return;
                }
            }
        }
    }
}
