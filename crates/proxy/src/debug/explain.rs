//! `POST /debug/explain`: how a request would be scheduled. The same parsing, routing and planning as for a real one;
//! nothing is forwarded, recorded or counted.

use crate::app::App;
use crate::error::Refusal;
use crate::front::{ClientBody, decoded, json, parse, read_body};
use http::{Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use routing::fleet::{ModelServer, PdRole, Pod, PodId};
use routing::request::Api;
use routing::route::route;
use routing::schedule::{Ask, Hashes, Matches, Observer, Pair, Row, Score, Total};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::iter::repeat;

/// Answers with the decision, or with the error that a client would get.
pub(super) async fn answer(app: &App, request: Request<Incoming>) -> Response<ClientBody> {
    let path = target(request.uri());
    let api = Api::of(&path);
    match explain(app, request, &path).await {
        Ok(answer) => json(StatusCode::OK, answer.to_string().into()),
        Err(refusal) => refusal.response(api).map(ClientBody::from),
    }
}

/// The path that the request would be sent to.
fn target(uri: &Uri) -> String {
    let query = uri.query().unwrap_or_default();
    let path = query.split('&').find_map(|pair| pair.strip_prefix("path="));
    path.unwrap_or("/v1/chat/completions")
        .replace("%2F", "/")
        .replace("%2f", "/")
}

async fn explain(app: &App, request: Request<Incoming>, path: &str) -> Result<Value, Refusal> {
    let (mut parts, body) = request.into_parts();
    let limit = app.settings.max_body;
    let body = read_body(body, limit).await?;
    let (plain, _) = decoded(&parts.headers, &body, limit).await?;
    parts.uri = path.parse().unwrap_or_default();
    let request = parse(&parts, &plain)?;
    let fleet = app.fleet();
    let draw = crate::rand::bits();
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
    let mut decision = Decision::default();
    let attempts = attempts(app, &ask, routed.server, &mut decision);
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
        "candidates": decision.candidates(routed.server),
        "attempts": attempts,
    }))
}

/// What would be tried, best first: pods, or pairs of them. A plan that fails still has its candidates to show: which
/// plugin dropped them is the answer.
fn attempts(app: &App, ask: &Ask<'_>, server: &ModelServer, decision: &mut Decision) -> Vec<Value> {
    if let Some(pods) = server.disaggregated() {
        let plan = app.scheduler.plan_pairs(ask, pods, decision).ok();
        let pair = |pair: &Pair| {
            let prefill = pair.prefill_without(&[]).map(|p| p.name.as_str());
            json!({"prefill": prefill, "decode": pair.decode.name.as_str()})
        };
        return plan.iter().flat_map(|p| &p.pairs).map(pair).collect();
    }
    let plan = app.scheduler.plan(ask, server, decision).ok();
    let pods = plan.iter().flat_map(|plan| &plan.attempts);
    pods.map(|pod| pod.name.as_str().into()).collect()
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
