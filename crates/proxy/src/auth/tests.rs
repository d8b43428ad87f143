//! Tokens that count and tokens that do not, with an issuer that is there or not.

use super::fetch::Place;
use super::jwt::{Invalid, KeySet};
use super::keys::{Keys, Pace};
use super::{Auth, Denied, Rules};
use e2e::{Pod, Script, until};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A key that signs.
struct Signer {
    key: EncodingKey,
    algorithm: Algorithm,
}

impl Signer {
    fn rsa(algorithm: Algorithm) -> Self {
        let key = EncodingKey::from_rsa_der(include_bytes!("../../tests/keys/rsa-2048.der"));
        Self { key, algorithm }
    }

    fn ed25519() -> Self {
        let key = EncodingKey::from_ed_der(include_bytes!("../../tests/keys/ed25519.der"));
        Self {
            key,
            algorithm: Algorithm::EdDSA,
        }
    }

    fn all() -> Vec<Self> {
        let p256 = EncodingKey::from_ec_der(include_bytes!("../../tests/keys/ec-256.der"));
        let p384 = EncodingKey::from_ec_der(include_bytes!("../../tests/keys/ec-384.der"));
        use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
        let rsa = [RS256, RS384, RS512, PS256, PS384, PS512].map(Self::rsa);
        let ec = [
            Self {
                key: p256,
                algorithm: Algorithm::ES256,
            },
            Self {
                key: p384,
                algorithm: Algorithm::ES384,
            },
        ];
        rsa.into_iter().chain(ec).chain([Self::ed25519()]).collect()
    }

    /// The public key, with these members besides.
    fn jwk(&self, more: Value) -> Value {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk.as_object_mut().unwrap().remove("alg");
        for (name, value) in more.as_object().unwrap() {
            jwk[name] = value.clone();
        }
        jwk
    }

    fn token(&self, header: Value, claims: &Value) -> String {
        let mut all = serde_json::to_value(Header::new(self.algorithm)).unwrap();
        for (name, value) in header.as_object().unwrap() {
            all[name] = value.clone();
        }
        let header: Header = serde_json::from_value(all).unwrap();
        encode(&header, claims, &self.key).unwrap()
    }
}

fn set(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

fn parsed(keys: &[Value]) -> KeySet {
    KeySet::parse(set(keys).as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({"iss": "https://issuer", "sub": "u", "exp": 4_000_000_000u64})
}

#[test]
fn every_asymmetric_algorithm_is_accepted_with_its_key() {
    for signer in Signer::all() {
        let keys = parsed(&[signer.jwk(json!({"kid": "k"}))]);
        for header in [json!({"kid": "k"}), json!({})] {
            let found = keys.verify(&signer.token(header, &claims()));
            assert_eq!(
                found.map(Value::from),
                Ok(claims()),
                "{:?}",
                signer.algorithm
            );
        }
    }
}

#[test]
fn a_signature_of_another_key_or_over_other_text_does_not_count() {
    for signer in Signer::all() {
        let token = signer.token(json!({}), &claims());
        let keys = parsed(&[signer.jwk(json!({}))]);
        let (message, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = message.split_once('.').unwrap();
        let other = signer.token(json!({}), &json!({"sub": "root"}));
        let payload = other.split('.').nth(1).unwrap();
        for forged in [
            format!("{header}.{payload}.{signature}"),
            format!("{message}."),
            format!("{message}.{}", "A".repeat(signature.len())),
            format!("{message}.no base64!"),
        ] {
            assert_eq!(
                keys.verify(&forged),
                Err(Invalid::Signature),
                "{:?}",
                signer.algorithm
            );
        }
    }
}

#[test]
fn algorithm_confusion_is_refused() {
    let signer = Signer::rsa(Algorithm::RS256);
    let jwk = signer.jwk(json!({"kid": "k"}));
    let keys = parsed(&[jwk.clone(), Signer::ed25519().jwk(json!({"kid": "ed"}))]);
    // The public key, which everybody knows, as a shared secret.
    let public = jwk["n"].as_str().unwrap().as_bytes();
    let secret = Signer {
        key: EncodingKey::from_secret(public).unwrap(),
        algorithm: Algorithm::HS256,
    };
    let forged = secret.token(json!({"kid": "k"}), &claims());
    assert_eq!(keys.verify(&forged), Err(Invalid::Algorithm));
    // A shared secret in the key set is no key either.
    let oct = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "oct"});
    assert!(KeySet::parse(set(&[oct]).as_bytes()).is_err());
    // {"alg":"none"}, {"alg":"None"}, and no algorithm at all, with and without a signature.
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0", "e30"] {
        for token in [
            format!("{header}.e30."),
            format!("{header}.e30"),
            format!("{header}.e30.AAAA"),
        ] {
            assert_eq!(keys.verify(&token), Err(Invalid::NotAToken), "{token}");
        }
    }
    // An algorithm of another key type, or one that the key is not for.
    let ed = Signer::ed25519().token(json!({"kid": "k"}), &claims());
    assert_eq!(keys.verify(&ed), Err(Invalid::Algorithm));
    let only = parsed(&[signer.jwk(json!({"kid": "k", "alg": "RS512"}))]);
    let token = signer.token(json!({"kid": "k"}), &claims());
    assert_eq!(only.verify(&token), Err(Invalid::Algorithm));
    assert!(keys.verify(&token).is_ok());
}

#[test]
fn the_key_id_decides_and_without_one_there_must_be_no_choice() {
    let (rsa, ed) = (Signer::rsa(Algorithm::RS256), Signer::ed25519());
    let keys = parsed(&[rsa.jwk(json!({"kid": "a"})), ed.jwk(json!({"kid": "b"}))]);
    assert!(
        keys.verify(&ed.token(json!({"kid": "b"}), &claims()))
            .is_ok()
    );
    let unknown = Err(Invalid::UnknownKey);
    assert_eq!(
        keys.verify(&ed.token(json!({"kid": "c"}), &claims())),
        unknown
    );
    assert_eq!(keys.verify(&ed.token(json!({}), &claims())), unknown);
    // Two keys of one name, as while one is replaced.
    let twins = parsed(&[rsa.jwk(json!({"kid": "a"})), ed.jwk(json!({"kid": "a"}))]);
    for signer in [&rsa, &ed] {
        assert!(
            twins
                .verify(&signer.token(json!({"kid": "a"}), &claims()))
                .is_ok()
        );
    }
}

#[test]
fn keys_that_nobody_should_trust_are_left_out_and_the_others_used() {
    let ed = Signer::ed25519();
    let weak = Signer {
        key: EncodingKey::from_rsa_der(include_bytes!("../../tests/keys/rsa-1024.der")),
        algorithm: Algorithm::RS256,
    };
    let odd = [
        weak.jwk(json!({})),
        ed.jwk(json!({"use": "enc"})),
        ed.jwk(json!({"key_ops": ["sign"]})),
        ed.jwk(json!({"alg": "RS256"})),
        ed.jwk(json!({"x": "AAAA"})),
        json!({"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}),
        json!({"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA"}),
        json!({"kty": "RSA", "n": "", "e": ""}),
        json!({"kty": "future"}),
        json!("text"),
    ];
    for key in &odd {
        assert!(
            KeySet::parse(set(std::slice::from_ref(key)).as_bytes()).is_err(),
            "{key}"
        );
    }
    let good = ed.jwk(json!({"kid": "k", "use": "sig", "key_ops": ["verify"]}));
    let keys = parsed(&[&odd[..], &[good]].concat());
    assert_eq!(keys.len(), 1);
    assert!(
        keys.verify(&ed.token(json!({"kid": "k"}), &claims()))
            .is_ok()
    );
    for text in ["", "[]", "{}", "{\"keys\": {}}", "{\"keys\": []}"] {
        assert!(KeySet::parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_header_that_must_be_understood_is_refused() {
    let ed = Signer::ed25519();
    let keys = parsed(&[ed.jwk(json!({}))]);
    let token = ed.token(json!({"crit": ["exp"], "exp": 1}), &claims());
    assert!(keys.verify(&token).is_err());
    for token in [
        "",
        ".",
        "..",
        "a.b.c",
        "a.b.c.d",
        "e30.e30.e30",
        "\u{e9}.\u{e9}.\u{e9}",
    ] {
        assert_eq!(keys.verify(token), Err(Invalid::NotAToken), "{token:?}");
    }
}

/// An issuer, and an `Auth` that follows it at this pace.
async fn followed(issuer: &Pod, pace: Pace) -> Arc<Auth> {
    let place = Place::new(&format!("http://127.0.0.1:{}/keys", issuer.port())).unwrap();
    let rules = Rules {
        issuer: "https://issuer".into(),
        audiences: Vec::new(),
    };
    let auth = Arc::new(Auth {
        rules,
        keys: Keys::new(place, pace),
    });
    let follower = Arc::clone(&auth);
    tokio::spawn(async move { follower.follow().await });
    auth
}

async fn check(auth: &Auth, token: &str) -> Result<(), Denied> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    auth.check(&headers).await.map(|_| ())
}

const QUICK: Pace = Pace {
    refresh: Duration::from_secs(3600),
    rest: Duration::ZERO,
    back_off: Duration::from_millis(1),
    max_back_off: Duration::from_millis(4),
};

fn refused(why: &str) -> Result<(), Denied> {
    Err(Denied::Refused(why.into()))
}

#[tokio::test]
async fn an_issuer_that_is_down_is_asked_again_until_it_is_up() {
    let issuer = Pod::start().await;
    issuer.answers(Script::json(503, "{}"));
    let auth = followed(&issuer, QUICK).await;
    let ed = Signer::ed25519();
    let token = ed.token(json!({"kid": "k"}), &claims());
    let none = refused("no JWKS available for token validation");
    assert_eq!(check(&auth, &token).await, none);
    issuer.request(5).await;
    issuer.answers(Script::json(200, set(&[ed.jwk(json!({"kid": "k"}))])));
    until("the keys are there", async || {
        check(&auth, &token).await.ok()
    })
    .await;
    // And down again: the last good keys serve on.
    issuer.answers(Script::cut());
    let unknown = ed.token(json!({"kid": "x"}), &claims());
    assert!(check(&auth, &unknown).await.is_err());
    assert_eq!(check(&auth, &token).await, Ok(()));
}

#[tokio::test]
async fn an_unknown_key_id_is_looked_up_before_it_is_refused() {
    let issuer = Pod::start().await;
    let (rsa, ed) = (Signer::rsa(Algorithm::RS256), Signer::ed25519());
    let old = rsa.jwk(json!({"kid": "old"}));
    let new = ed.jwk(json!({"kid": "new"}));
    issuer.answers(Script::json(200, set(&[old])));
    let auth = followed(&issuer, QUICK).await;
    let before = rsa.token(json!({"kid": "old"}), &claims());
    assert_eq!(
        check(&auth, &before).await,
        Ok(()),
        "it waits for the first fetch"
    );
    issuer.answers(Script::json(200, set(&[new])));
    let after = ed.token(json!({"kid": "new"}), &claims());
    // For a moment after a fetch it does not ask for another.
    until("the new key is found", async || {
        check(&auth, &after).await.ok()
    })
    .await;
    let gone = refused("failed to parse jwt: its key id is not in the key set");
    assert_eq!(
        check(&auth, &before).await,
        gone,
        "what the issuer withdrew no longer counts"
    );
}

#[tokio::test]
async fn invented_key_ids_do_not_flood_the_issuer() {
    let issuer = Pod::start().await;
    let ed = Signer::ed25519();
    issuer.answers(Script::json(200, set(&[ed.jwk(json!({"kid": "k"}))])));
    let rest = Duration::from_secs(3600);
    let auth = followed(&issuer, Pace { rest, ..QUICK }).await;
    assert_eq!(
        check(&auth, &ed.token(json!({"kid": "k"}), &claims())).await,
        Ok(())
    );
    for number in 0..50 {
        let token = ed.token(json!({"kid": format!("invented-{number}")}), &claims());
        let why = refused("failed to parse jwt: its key id is not in the key set");
        assert_eq!(check(&auth, &token).await, why);
    }
    assert_eq!(issuer.seen().len(), 1);
}

#[tokio::test]
async fn a_fetch_is_bounded_in_size_and_in_time() {
    let issuer = Pod::start().await;
    let place =
        |path: &str| Place::new(&format!("http://127.0.0.1:{}{path}", issuer.port())).unwrap();
    issuer.next(Script::json(200, "x".repeat(1 << 20)));
    assert_eq!(place("/a?b=c").fetch().await.unwrap().len(), 1 << 20);
    assert_eq!(issuer.only().line, "GET /a?b=c HTTP/1.1");
    issuer.next(Script::json(200, "x".repeat((1 << 20) + 1)));
    assert_eq!(
        place("").fetch().await.unwrap_err(),
        "length limit exceeded"
    );
    issuer.next(Script::reply(302, &[("location", "http://elsewhere/")], ""));
    let why = place("/").fetch().await.unwrap_err();
    assert!(why.ends_with(" answered 302 Found"), "{why}");
    issuer.next(Script::cut());
    assert!(place("/").fetch().await.is_err());
    issuer.next(Script::hang());
    tokio::time::pause();
    assert_eq!(
        place("/").fetch().await.unwrap_err(),
        "no answer within 5 s"
    );
}

#[tokio::test]
async fn over_tls_the_issuer_must_prove_its_name() {
    let authority = CertificateDer::from(&include_bytes!("../../tests/tls/ca.der")[..]);
    let chain = vec![CertificateDer::from(
        &include_bytes!("../../tests/tls/server.der")[..],
    )];
    let key =
        PrivateKeyDer::try_from(&include_bytes!("../../tests/tls/server-key.der")[..]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkeys")
                .await;
            let _ = stream.shutdown().await;
        }
    });
    let fetch = async |host: &str, trusted: bool| {
        let roots = || {
            let mut roots = RootCertStore::empty();
            if trusted {
                roots.add(authority.clone()).unwrap();
            }
            Ok(roots)
        };
        let place = Place::trusting(&format!("https://{host}:{port}/keys"), roots).unwrap();
        assert!(!place.is_plain());
        place.fetch().await
    };
    assert_eq!(fetch("127.0.0.1", true).await.unwrap(), "keys");
    assert_eq!(fetch("localhost", true).await.unwrap(), "keys");
    let why = fetch("127.0.0.1", false).await.unwrap_err();
    assert!(
        why.starts_with("TLS: ") && why.contains("UnknownIssuer"),
        "{why}"
    );
    let why = fetch("127.0.0.2", true).await.unwrap_err();
    assert!(
        why.starts_with("TLS: ") || why.starts_with("cannot connect"),
        "{why}"
    );
}

#[test]
fn a_url_that_cannot_be_fetched_is_refused() {
    for (url, why) in [
        ("", "it is no URL"),
        ("keys", "it is no URL with a scheme and a host"),
        ("ftp://host/keys", "the scheme ftp is not supported"),
    ] {
        let error = Auth::new("i".into(), Vec::new(), url).unwrap_err();
        assert!(
            error.starts_with(&format!("auth.jwksUri {url:?}: {why}")),
            "{error}"
        );
    }
}
