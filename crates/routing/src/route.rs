//! From a request to the server that its route names.

use crate::fleet::{
    Fleet, ModelRoute, ModelServer, ObjectName, Rule, RuleMatch, Target, TargetRef,
};
use http::HeaderMap;
use std::sync::Arc;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub struct Routed<'f> {
    /// Whose pods may serve it.
    pub server: &'f Arc<ModelServer>,
    /// Which route said so.
    pub route: &'f Arc<ModelRoute>,
    /// The model's name for the pod, when it is not the one that the client sent.
    pub upstream_model: Option<&'f str>,
    /// The client's name of the model, as the fleet's own copy.
    pub model: &'f Arc<str>,
}

/// Why a request goes nowhere. Each is a 404.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// No route for the model, or none whose rules match.
    #[error("route not found")]
    NotFound,
    /// The route names a server that does not exist.
    #[error("can't find model server: {0}")]
    ServerMissing(ObjectName),
    /// The route names an external provider.
    #[error("can't find external model provider: {0}")]
    ExternalProvider(ObjectName),
}

/// Finds the server for a request. `path` is the URL's path without the query; `draw` is 64 random bits for the choice
/// between weighted targets.
///
/// The routes of a base model are asked first, those of an adapter only when no base model has the name. The first
/// rule that matches decides for its route; when its weights make no sense the next route is asked.
///
/// # Errors
/// No route matches, or the target that was chosen cannot be served.
pub fn route<'f>(
    fleet: &'f Fleet,
    model: &str,
    path: &str,
    headers: &HeaderMap,
    draw: u64,
) -> Result<Routed<'f>, RouteError> {
    let (routes, is_adapter) = fleet.routes_for(model).ok_or(RouteError::NotFound)?;
    let known = fleet.known_model(model).ok_or(RouteError::NotFound)?;
    let usable = routes.iter().filter(|route| !route.has_parent_refs);
    let (route, target) = usable
        .filter_map(|route| {
            let rule = route
                .rules
                .iter()
                .find(|rule| applies(rule, model, path, headers))?;
            Some((route, pick(&rule.targets, draw)?))
        })
        .next()
        .ok_or(RouteError::NotFound)?;
    match &target.to {
        TargetRef::Server(name) => {
            let server = fleet
                .server(name)
                .ok_or_else(|| RouteError::ServerMissing(name.clone()))?;
            let upstream_model = server
                .model
                .as_deref()
                .filter(|name| !is_adapter && *name != model);
            Ok(Routed {
                server,
                route,
                upstream_model,
                model: known,
            })
        }
        TargetRef::External(name) => Err(RouteError::ExternalProvider(name.clone())),
    }
}

fn applies(rule: &Rule, model: &str, path: &str, headers: &HeaderMap) -> bool {
    let Some(RuleMatch {
        headers: wanted,
        uri,
        body_model,
    }) = &rule.matches
    else {
        return true;
    };
    wanted.iter().all(|(name, wanted)| {
        let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        wanted.matches(&String::from_utf8_lossy(value))
    }) && uri.as_ref().is_none_or(|wanted| wanted.matches(path))
        && body_model.as_ref().is_none_or(|wanted| wanted == model)
}

/// One of the targets, each as often as its share of the weights. `None` when there is no target, when only some have
/// a weight, or when all weights are zero.
fn pick(targets: &[Target], draw: u64) -> Option<&Target> {
    let weighted = targets
        .iter()
        .filter(|target| target.weight.is_some())
        .count();
    if weighted != 0 && weighted != targets.len() {
        return None;
    }
    let weight = |target: &Target| u64::from(target.weight.unwrap_or(DEFAULT_WEIGHT));
    let total: u64 = targets.iter().map(weight).sum();
    // The fraction draw / 2^64 of the total: no bias beyond one draw in 2^64 for each target.
    let mut point = ((u128::from(draw) * u128::from(total)) >> 64) as u64;
    targets.iter().find(|target| {
        let chosen = point < weight(target);
        point = point.wrapping_sub(weight(target));
        chosen
    })
}

/// The weight of each target when none has one (the default of the resource's schema).
const DEFAULT_WEIGHT: u32 = 100;
