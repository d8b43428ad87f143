//! Signatures of tokens. The one file that knows the library behind them.
//!
//! A token says in its header which key and which algorithm it was signed with; neither is believed. The key's own type
//! gives the algorithms that fit it, all of them asymmetric, so that no token can turn a public key into a shared secret
//! (algorithm confusion) or go without a signature.

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Validation, decode, decode_header};
use routing::session::Claims;
use serde_json::Value;

/// Keys of a set that are looked at, at most.
const MAX_KEYS: usize = 256;
/// Length of an RSA modulus, in bytes. Shorter ones can be broken (NIST SP 800-131A asks for 2048 bits); longer ones
/// cost a request too much time.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// The keys of an issuer that can check signatures.
#[derive(Debug)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// Why a token's signature does not count. The texts hold nothing of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Invalid {
    #[error("it is not a JSON Web Token with an accepted algorithm")]
    NotAToken,
    #[error("its key id is not in the key set")]
    UnknownKey,
    #[error("its algorithm does not fit the key")]
    Algorithm,
    #[error("its signature is not valid")]
    Signature,
}

impl KeySet {
    /// Reads a JWK set (RFC 7517). Keys that cannot check signatures, or that nobody should trust, are left out.
    ///
    /// # Errors
    /// When the text is no JWK set, or has no key that can be used.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let set: Value =
            serde_json::from_slice(text).map_err(|e| format!("the key set is no JSON: {e}"))?;
        let Some(Value::Array(all)) = set.get("keys") else {
            return Err("the key set has no list \"keys\"".into());
        };
        let keys: Vec<_> = all.iter().take(MAX_KEYS).filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err(format!("none of the {} keys can check a token", all.len()));
        }
        Ok(Self { keys })
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The claims of a token that one of these keys has signed. They are not checked otherwise.
    ///
    /// # Errors
    /// When none of them has.
    pub(super) fn verify(&self, token: &str) -> Result<Claims, Invalid> {
        let header = decode_header(token).map_err(|_| Invalid::NotAToken)?;
        let named: Vec<&Key> = match &header.kid {
            Some(id) => {
                let named = self.keys.iter().filter(|key| key.id.as_ref() == Some(id));
                named.collect()
            }
            // Without a name there must be no choice.
            None if self.keys.len() == 1 => self.keys.iter().collect(),
            None => Vec::new(),
        };
        if named.is_empty() {
            return Err(Invalid::UnknownKey);
        }
        let mut fitting = named
            .into_iter()
            .filter(|key| key.algorithms.contains(&header.alg))
            .peekable();
        if fitting.peek().is_none() {
            return Err(Invalid::Algorithm);
        }
        let mut validation = Validation::new(header.alg);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        fitting
            .find_map(|key| decode::<Claims>(token, &key.key, &validation).ok())
            .map(|data| data.claims)
            .ok_or(Invalid::Signature)
    }
}

impl Key {
    fn read(written: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(written.clone()).ok()?;
        let common = &jwk.common;
        let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
            && common
                .key_operations
                .as_ref()
                .is_none_or(|ops| ops.contains(&KeyOperations::Verify));
        if !for_signatures {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let fitting = fitting(&jwk.algorithm, key.kind())?;
        let only = common.key_algorithm;
        let algorithms: Vec<_> = fitting
            .iter()
            .copied()
            .filter(|alg| only.is_none_or(|only| only == KeyAlgorithm::from(*alg)))
            .collect();
        if algorithms.is_empty() {
            return None;
        }
        Some(Self {
            id: common.key_id.clone(),
            algorithms,
            key,
        })
    }
}

/// The algorithms of a key's type (RFC 7518, section 3.1; RFC 8037), if the key is as long as the type says.
fn fitting(
    parameters: &AlgorithmParameters,
    key: &DecodingKeyKind,
) -> Option<&'static [Algorithm]> {
    // An uncompressed point is 0x04, x and y.
    let (algorithms, bytes): (&[_], _) = match (parameters, key) {
        (AlgorithmParameters::RSA(_), DecodingKeyKind::RsaModulusExponent { n, .. }) => {
            let length = n.iter().skip_while(|b| **b == 0).count();
            return RSA_BYTES.contains(&length).then_some(RSA);
        }
        (AlgorithmParameters::EllipticCurve(ec), _) => match ec.curve {
            EllipticCurve::P256 => (&[Algorithm::ES256], 65),
            EllipticCurve::P384 => (&[Algorithm::ES384], 97),
            _ => return None,
        },
        (AlgorithmParameters::OctetKeyPair(okp), _) => match okp.curve {
            EllipticCurve::Ed25519 => (&[Algorithm::EdDSA], 32),
            _ => return None,
        },
        _ => return None,
    };
    match key {
        DecodingKeyKind::SecretOrDer(key) if key.len() == bytes => Some(algorithms),
        _ => None,
    }
}
