//! Validation of the clients' tokens, for everything below `/v1/`.
//!
//! ```text
//! Authorization ─ bearer ─▶ jwt (signature, by keys ◀─ fetch) ─▶ claims ─▶ the claims, or a 401
//! ```
//!
//! No token, and nothing of one but a refused issuer or audience, goes into an answer or a log.

mod bearer;
mod claims;
mod fetch;
mod jwt;
mod keys;
#[cfg(test)]
mod tests;

use claims::Rules;
use fetch::Place;
use http::HeaderMap;
use jwt::Invalid;
use keys::{Keys, Pace};
use routing::session::Claims;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Whose tokens are accepted, and the keys to tell them by.
pub struct Auth {
    rules: Rules,
    keys: Keys,
}

/// Why a request without a valid token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There is no token.
    #[error("Authorization header missing or invalid")]
    NoToken,
    /// There is one, but it does not count.
    #[error("Unauthorized: {0}")]
    Refused(String),
}

impl Auth {
    /// Tokens of `issuer` for one of `audiences` (for anyone, if there are none), signed with a key of the JWK set at
    /// `jwks_uri`. Nothing is fetched before [`Self::follow`].
    ///
    /// # Errors
    /// When `jwks_uri` is no URL that can be fetched.
    pub fn new(issuer: String, audiences: Vec<String>, jwks_uri: &str) -> Result<Self, String> {
        let place =
            Place::new(jwks_uri).map_err(|why| format!("auth.jwksUri {jwks_uri:?}: {why}"))?;
        if place.is_plain() {
            tracing::warn!(
                "auth.jwksUri is not https: whoever is on the way to it can issue tokens"
            );
        }
        Ok(Self {
            rules: Rules { issuer, audiences },
            keys: Keys::new(place, Pace::default()),
        })
    }

    /// Keeps the keys fresh, for ever.
    pub async fn follow(&self) {
        self.keys.follow().await;
    }

    /// The claims of the request's token.
    ///
    /// # Errors
    /// When the request has no token, or none that counts now.
    pub(crate) async fn check(&self, headers: &HeaderMap) -> Result<Claims, Denied> {
        let token = bearer::token(headers).ok_or(Denied::NoToken)?;
        let claims = self.signed(token).await.map_err(Denied::Refused)?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        self.rules.check(&claims, now).map_err(Denied::Refused)?;
        Ok(claims)
    }

    async fn signed(&self, token: &str) -> Result<Claims, String> {
        let verify = || self.keys.current().map(|keys| keys.verify(token));
        let mut verified = verify();
        if matches!(verified, None | Some(Err(Invalid::UnknownKey))) {
            self.keys.refreshed().await;
            verified = verify();
        }
        verified
            .ok_or_else(|| "no JWKS available for token validation".to_owned())?
            .map_err(|invalid| format!("failed to parse jwt: {invalid}"))
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
