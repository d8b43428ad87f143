//! What makes requests of one session.

use http::HeaderName;
use std::time::Duration;

/// Requests of one session go to one pod of the server. Off where a server has none of this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSticky {
    /// How long a session without requests is remembered; whole seconds, at least one.
    pub affinity: Duration,
    /// Where the session's key is looked for, in this order. 1 to 16 places.
    pub sources: Vec<KeySource>,
}

/// One place of a session's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A request header.
    Header(HeaderName),
    /// A parameter of the URL's query, as it reads when decoded.
    Query(String),
    /// A cookie; its name is compared with regard to case.
    Cookie(String),
    /// A claim of the validated token.
    Claim(String),
}

impl KeySource {
    /// Its type as manifests spell it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Header(_) => "Header",
            Self::Query(_) => "Query",
            Self::Cookie(_) => "Cookie",
            Self::Claim(_) => "JWTClaim",
        }
    }
}
