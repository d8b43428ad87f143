//! `spec.trafficPolicy.sessionSticky` of a ModelServer.

use crate::fields::Reader;
use std::time::Duration;

/// Requests of one session go to one pod. Checked, but without an effect in this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSticky {
    /// How long a session without requests is remembered. At least one second; 300 s unless set.
    pub affinity: Duration,
    /// Where the session's key is looked for, in this order. 1 to 16 places.
    pub sources: Vec<KeySource>,
}

/// One place of a session key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource {
    /// The kind of place.
    pub kind: KeySourceType,
    /// Its name, never empty.
    pub name: String,
}

/// Kinds of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySourceType {
    /// A request header; its name is compared without regard to case.
    Header,
    /// A parameter of the URL's query.
    Query,
    /// A cookie.
    Cookie,
    /// A claim of the validated token.
    JwtClaim,
}

const SOURCE_TYPES: &[(&str, KeySourceType)] = &[
    ("Header", KeySourceType::Header),
    ("Query", KeySourceType::Query),
    ("Cookie", KeySourceType::Cookie),
    ("JWTClaim", KeySourceType::JwtClaim),
];

pub(super) fn read(at: &Reader<'_>) -> Option<SessionSticky> {
    at.without_effect();
    let mut fields = at.object()?;
    let seconds = fields
        .optional("sessionAffinitySeconds")
        .map(|s| s.integer::<u32>(1..=i64::from(i32::MAX)));
    let sources = fields.required("sources");
    fields.finish();

    let sources = sources?;
    let items = sources.list(16)?;
    if items.is_empty() {
        sources.error("Invalid value: 0: should have at least 1 items");
    }
    let sources = items.iter().filter_map(read_source).collect();
    Some(SessionSticky {
        affinity: Duration::from_secs(seconds.unwrap_or(Some(300))?.into()),
        sources,
    })
}

fn read_source(at: &Reader<'_>) -> Option<KeySource> {
    let mut fields = at.object()?;
    let kind = fields
        .required("type")
        .and_then(|kind| kind.one_of(SOURCE_TYPES));
    let name = fields.required("name");
    fields.finish();
    let name = name?;
    let text = name.string()?;
    if text.is_empty() {
        name.error("Invalid value: \"\": should be at least 1 chars long");
    }
    Some(KeySource {
        kind: kind?,
        name: text.to_owned(),
    })
}
