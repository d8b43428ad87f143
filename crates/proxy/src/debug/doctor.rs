//! `/debug/doctor`: what is wrong with this router, as text or with `?format=json`. It reads the pages beside it, as the
//! command does from outside.

use super::{not_found, read};
use crate::app::App;
use crate::doctor::{Answers, Exposition, Facts, Replica, examine, render, report};
use crate::front::{ClientBody, json};
use crate::upkeep::metrics_page;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;

/// All decisions that are kept.
const ALL: &str = "limit=100000";

pub(super) async fn answer(app: &Arc<App>, query: &str) -> Response<ClientBody> {
    let answers = Answers {
        router: page(app, "/debug/router", "").await,
        prefix: page(app, "/debug/prefix-cache", "").await,
        decisions: page(app, "/debug/decisions", ALL).await,
        prompts: page(app, "/debug/prompts", "").await,
        pods: page(app, "/debug/config_dump/pods", "").await,
    };
    // The pages are this program's own; tests hold them and the types that read them together.
    let Ok(facts) = Facts::new(answers, vec![replica(app)]) else {
        return not_found();
    };
    let findings = examine(&facts);
    if query.split('&').any(|pair| pair == "format=json") {
        let body = report(&facts, &findings);
        return json(StatusCode::OK, body.to_string().into());
    }
    let text = render(&facts, &findings);
    let mut response = Response::new(ClientBody::from(Bytes::from(text)));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

async fn page(app: &Arc<App>, path: &str, query: &str) -> Value {
    match read(app, path, query).await.into_body().collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

/// This process, with what grew since its start.
fn replica(app: &App) -> Replica {
    Replica {
        address: "this router".to_owned(),
        before: None,
        now: Exposition::parse(&metrics_page(app)),
    }
}
