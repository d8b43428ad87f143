//! `spec.trafficPolicy.sessionSticky` of a ModelServer.

use super::Objects;
use crate::fields::Reader;
use crate::problem::{Problem, Severity};
use routing::fleet::{KeySource, SessionSticky};
use std::time::Duration;

/// `sessionAffinitySeconds` unless set.
const AFFINITY_SECONDS: u32 = 300;
/// Most items of `sources`.
const MAX_SOURCES: usize = 16;

#[derive(Clone, Copy)]
enum Kind {
    Header,
    Query,
    Cookie,
    JwtClaim,
}

const KINDS: &[(&str, Kind)] = &[
    ("Header", Kind::Header),
    ("Query", Kind::Query),
    ("Cookie", Kind::Cookie),
    ("JWTClaim", Kind::JwtClaim),
];

pub(super) fn read(at: &Reader<'_>) -> Option<SessionSticky> {
    let mut fields = at.object()?;
    let seconds = fields
        .optional("sessionAffinitySeconds")
        .map(|s| s.integer::<u32>(1..=i64::from(i32::MAX)));
    let sources = fields.required("sources");
    fields.finish();

    let sources = sources?;
    let items = sources.list(MAX_SOURCES)?;
    if items.is_empty() {
        sources.missing("sources must be non-empty when sessionSticky is set");
    }
    let sources = items.iter().filter_map(read_source).collect();
    Some(SessionSticky {
        affinity: Duration::from_secs(seconds.unwrap_or(Some(AFFINITY_SECONDS))?.into()),
        sources,
    })
}

/// A warning for each ModelServer with a JWTClaim source, for a router that validates no tokens: such a source never names a
/// session there.
#[must_use]
pub fn claims_without_auth(objects: &Objects) -> Vec<Problem> {
    let is_claim = |source: &KeySource| matches!(source, KeySource::Claim(_));
    let servers = objects.servers.iter().filter_map(|server| {
        let sticky = server.policy.session_sticky.as_ref()?;
        let at = sticky.sources.iter().position(is_claim)?;
        Some(server.meta.place.problem(
            Severity::Warning,
            &format!("spec.trafficPolicy.sessionSticky.sources[{at}]"),
            format!(
                "JWTClaim names no session of ModelServer {}: the routerConfiguration has no auth, so tokens are not looked at",
                server.meta.name
            ),
        ))
    });
    servers.collect()
}

fn read_source(at: &Reader<'_>) -> Option<KeySource> {
    let mut fields = at.object()?;
    let kind = fields.required("type").and_then(|kind| kind.one_of(KINDS));
    let name = fields.required("name");
    fields.finish();
    let name = name?;
    let text = name.string()?;
    if text.is_empty() {
        name.error("Invalid value: \"\": should be at least 1 chars long");
        return None;
    }
    Some(match kind? {
        Kind::Header => match text.parse() {
            Ok(header) => KeySource::Header(header),
            Err(_) => {
                name.error(format!(
                    "Invalid value: {text:?}: must be the name of an HTTP header"
                ));
                return None;
            }
        },
        Kind::Query => KeySource::Query(text.to_owned()),
        Kind::Cookie => KeySource::Cookie(text.to_owned()),
        Kind::JwtClaim => KeySource::Claim(text.to_owned()),
    })
}
