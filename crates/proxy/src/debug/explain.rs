//! `POST /debug/explain`: how a request would be scheduled. The same parsing, routing and planning as for a real one;
//! nothing is forwarded, recorded or counted, and a session lives no longer for it.
//!
//! Candidates are what a request without a session would be scored by; what a session is bound to comes first in the
//! attempts, without a score.

use crate::app::App;
use crate::error::Refusal;
use crate::front::{ClientBody, authorized, decoded, json, parse, read_body};
use crate::sticky::{Binding, Session};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use routing::fleet::{Disaggregated, KeySource, ModelServer, PdRole, Pod, PodId};
use routing::request::Api;
use routing::route::route;
use routing::schedule::{Ask, Hashes, Matches, Observer, Pair, Row, Score, Total, Unobserved};
use routing::session::{KeyParts, form_decoded};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::iter::repeat;

/// Answers with the decision, or with the error that a client would get.
pub(super) async fn answer(app: &App, request: Request<Incoming>) -> Response<ClientBody> {
    let target = target(request.uri());
    let api = Api::of(target.path());
    match explain(app, request, target).await {
        Ok(answer) => json(StatusCode::OK, answer.to_string().into()),
        Err(refusal) => refusal.response(api).map(ClientBody::from),
    }
}

/// The path that the request would be sent to, with its query if it has one.
fn target(uri: &Uri) -> Uri {
    let query = uri.query().unwrap_or_default();
    let path = query.split('&').find_map(|pair| pair.strip_prefix("path="));
    let path = form_decoded(path.unwrap_or("/v1/chat/completions"));
    Uri::try_from(&*path).unwrap_or_default()
}

async fn explain(app: &App, request: Request<Incoming>, target: Uri) -> Result<Value, Refusal> {
    let (mut parts, body) = request.into_parts();
    let limit = app.settings.max_body;
    let body = read_body(body, limit).await?;
    let (plain, _) = decoded(&parts.headers, &body, limit).await?;
    parts.uri = target;
    let request = parse(&parts, &plain)?;
    let fleet = app.fleet();
    let draw = crate::rand::bits();
    let path = parts.uri.path();
    let routed =
        route(&fleet, &request.model, path, &parts.headers, draw).map_err(Refusal::Route)?;
    if routed.server.pods().is_empty() {
        return Err(Refusal::NoPods(routed.server.name.clone()));
    }
    let ask = Ask {
        model: &request.model,
        prompt: &request.prompt,
        draw: crate::rand::bits(),
    };
    let session = session(app, routed.server, &parts).await;
    let mut decision = Decision::default();
    let bound = session.as_ref().map(|(_, session)| session);
    let (attempts, survives) = match routed.server.disaggregated() {
        None => pods(app, &ask, routed.server, bound, &mut decision),
        Some(pods) => pairs(app, &ask, routed.server, pods, bound, &mut decision),
    };
    let session = session
        .as_ref()
        .and_then(|(source, session)| Some(shown(source, session.binding()?, survives)));
    let hashes: Vec<_> = decision
        .hashes
        .iter()
        .flat_map(|h| h.iter())
        .map(|hash| format!("{hash:016x}"))
        .collect();
    Ok(json!({
        "model": request.model,
        "prompt": {
            "text": request.prompt.text(),
            "bytes": request.prompt.bytes().len(),
            "blocks": hashes.len(),
            "hashes": hashes,
        },
        "modelServer": routed.server.name.as_str(),
        "session": session,
        "candidates": decision.candidates(routed.server),
        "attempts": attempts,
    }))
}

/// The session of the request, if it is bound.
async fn session<'a, 's>(
    app: &'a App,
    server: &'s ModelServer,
    parts: &Parts,
) -> Option<(&'s KeySource, Session<'a>)> {
    let sticky = server.policy.session_sticky.as_ref()?;
    // A token that does not count names no session; whether it lets the request in is not asked here.
    let claims = authorized(app, &parts.headers).await.ok().flatten();
    let key_parts = KeyParts {
        headers: &parts.headers,
        query: parts.uri.query(),
        claims: claims.as_ref(),
    };
    Session::look(app, server, sticky, key_parts).await
}

fn shown(source: &KeySource, binding: &Binding, survives: bool) -> Value {
    let mut shown = json!({
        "source": source.as_str(),
        "pod": binding.pod.as_str(),
        "survives": survives,
    });
    if let Some(prefill) = &binding.prefill {
        shown["prefillPod"] = prefill.as_str().into();
    }
    shown
}

/// The pods that would be tried, best first, and whether the session's pod is the first of them. A plan that fails still
/// has its candidates to show: which plugin dropped them is the answer.
fn pods(
    app: &App,
    ask: &Ask<'_>,
    server: &ModelServer,
    session: Option<&Session<'_>>,
    decision: &mut Decision,
) -> (Vec<Value>, bool) {
    let scheduler = &app.scheduler;
    let scored = scheduler.plan(ask, server, decision).ok();
    let bound = session.and_then(|session| session.pod(server));
    let pinned = bound.and_then(|pod| scheduler.pinned(ask, pod, &mut Unobserved));
    let survives = pinned.is_some();
    let mut plans = match pinned {
        None => [scored, None],
        Some(pinned) => {
            let others = scheduler.plan_without(ask, server, &pinned.attempts, &mut Unobserved);
            [Some(pinned), others.ok()]
        }
    };
    if let (Some(is_behind), Some(last)) = (app.is_behind(), plans.iter_mut().flatten().last()) {
        last.put_behind(is_behind);
    }
    let pods = plans.iter().flatten().flat_map(|plan| &plan.attempts);
    (pods.map(|pod| pod.name.as_str().into()).collect(), survives)
}

/// The same for pairs of pods.
fn pairs(
    app: &App,
    ask: &Ask<'_>,
    server: &ModelServer,
    pods: &Disaggregated,
    session: Option<&Session<'_>>,
    decision: &mut Decision,
) -> (Vec<Value>, bool) {
    let scheduler = &app.scheduler;
    let scored = scheduler.plan_pairs(ask, pods, decision).ok();
    let bound = session.and_then(|session| session.pair(server));
    let pinned = bound.and_then(|(decode, prefill)| {
        scheduler.pinned_pair(ask, pods, prefill, decode, &mut Unobserved)
    });
    let survives = pinned.is_some();
    let mut plans = match pinned {
        None => [scored, None],
        Some(pinned) => {
            let others = pinned.pairs.first().and_then(|failed| {
                let others = scheduler.plan_pairs_without(ask, pods, failed, &mut Unobserved);
                others.ok()
            });
            [Some(pinned), others]
        }
    };
    let pair = |pair: &Pair| {
        let prefill = pair.prefill.first().map(|p| p.name.as_str());
        json!({"prefill": prefill, "decode": pair.decode.name.as_str()})
    };
    if let (Some(is_behind), Some(last)) = (app.is_behind(), plans.iter_mut().flatten().last()) {
        last.put_behind(is_behind);
    }
    let pairs = plans.iter().flatten().flat_map(|plan| &plan.pairs);
    (pairs.map(pair).collect(), survives)
}

/// What was seen of one decision.
#[derive(Default)]
struct Decision {
    pods: HashMap<PodId, Candidate>,
    hashes: Option<Hashes>,
}

#[derive(Default)]
struct Candidate {
    filtered_by: Option<&'static str>,
    scores: Map<String, Value>,
    matched: usize,
    total: Total,
}

impl Decision {
    fn of(&mut self, row: &Row<'_>) -> &mut Candidate {
        self.pods.entry(row.pod.id).or_default()
    }

    fn candidates(&mut self, server: &ModelServer) -> Vec<Value> {
        match server.disaggregated() {
            None => {
                let pods = server.pods().iter();
                pods.filter_map(|pod| self.candidate(pod)).collect()
            }
            // Decode pods first, as they are chosen. A pod that no pass looked at was no candidate: one without a role, or
            // in a group without a candidate for the other side.
            Some(pods) => {
                let prefill = pods.groups().iter().flatten();
                let all = pods.decode_pods().iter().zip(repeat(PdRole::Decode));
                all.chain(prefill.zip(repeat(PdRole::Prefill)))
                    .filter_map(|(pod, role)| {
                        let mut candidate = self.candidate(pod)?;
                        candidate["role"] = role.as_str().into();
                        Some(candidate)
                    })
                    .collect()
            }
        }
    }

    /// What was seen of a pod, if a pass looked at it.
    fn candidate(&mut self, pod: &Pod) -> Option<Value> {
        let seen = self.pods.remove(&pod.id)?;
        Some(json!({
            "pod": pod.name.as_str(),
            "filteredBy": seen.filtered_by,
            "scores": seen.scores,
            "matchedBlocks": seen.matched,
            "total": u64::try_from(seen.total).unwrap_or(u64::MAX),
        }))
    }
}

impl Observer for Decision {
    fn filtered(&mut self, plugin: &'static str, rows: &[Row<'_>], kept: &[bool]) {
        for (row, _) in rows.iter().zip(kept).filter(|(_, kept)| !**kept) {
            self.of(row).filtered_by = Some(plugin);
        }
    }

    fn scored(&mut self, plugin: &'static str, rows: &[Row<'_>], scores: &[Score]) {
        for (row, score) in rows.iter().zip(scores) {
            self.of(row)
                .scores
                .insert(plugin.to_owned(), score.get().into());
        }
    }

    fn matched(&mut self, rows: &[Row<'_>], matches: &Matches) {
        for (row, &blocks) in rows.iter().zip(&matches.blocks) {
            self.of(row).matched = blocks as usize;
        }
        self.hashes = Some(matches.hashes.clone());
    }

    fn totals(&mut self, rows: &[Row<'_>], totals: &[Total]) {
        for (row, total) in rows.iter().zip(totals) {
            self.of(row).total = *total;
        }
    }
}
