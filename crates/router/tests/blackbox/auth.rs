//! Tokens at the door.

use crate::{CHAT, COMPLETIONS, completion, setup};
use e2e::{Answer, Pod, Router, Script, Setup, until};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A throw-away Ed25519 key: RFC 8410's prefix and a seed.
fn key(seed: u8) -> EncodingKey {
    let mut der = vec![48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
    der.extend([seed; 32]);
    EncodingKey::from_ed_der(&der)
}

fn key_set() -> String {
    let mut jwk =
        serde_json::to_value(Jwk::from_encoding_key(&key(1), Algorithm::EdDSA).unwrap()).unwrap();
    jwk["kid"] = "k".into();
    json!({"keys": [jwk]}).to_string()
}

/// A token of user `u` with these claims changed.
fn token(seed: u8, kid: &str, changes: &Value) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let mut claims = json!({"iss": "https://issuer.test", "aud": "team", "sub": "u", "exp": now + 600, "iat": now});
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    let header = Header {
        kid: Some(kid.into()),
        ..Header::new(Algorithm::EdDSA)
    };
    encode(&header, &claims, &key(seed)).unwrap()
}

fn good() -> String {
    token(1, "k", &json!({}))
}

/// A router that takes tokens of this issuer.
fn guarded(issuer: &Pod) -> Setup {
    let config = e2e::scheduler(&[("random", 1)], "{}")
        + &format!(
            "auth:\n  issuer: https://issuer.test\n  audiences: [team, spare]\n  jwksUri: http://127.0.0.1:{}/keys\n",
            issuer.port()
        );
    setup().config(&config)
}

async fn ask(router: &Router, authorization: &str) -> Answer {
    let headers = [("authorization", authorization)];
    router.post_with(CHAT, &headers, completion("x")).await
}

#[tokio::test]
async fn only_valid_tokens_get_in() {
    let [pod, issuer] = Pod::several().await;
    issuer.answers(Script::json(200, key_set()));
    let router = guarded(&issuer).pods(&[&pod]).start().await;
    let bearer = format!("Bearer {}", good());
    assert_eq!(ask(&router, &bearer).await.status, 200);
    assert_eq!(
        ask(&router, &bearer.replace("Bearer", "bEARER "))
            .await
            .status,
        200
    );
    let sent = pod.seen()[0]
        .headers
        .get("authorization")
        .map(str::to_owned);
    assert_eq!(sent, Some(bearer), "the engine gets it as it came");

    let none = "Authorization header missing or invalid".to_owned();
    let parse = |why: &str| format!("Unauthorized: failed to parse jwt: {why}");
    let claims = |why: &str| format!("Unauthorized: failed to validate claims: {why}");
    let (head, signature) = {
        let t = good();
        let (h, s) = t.rsplit_once('.').unwrap();
        (h.to_owned(), s.to_owned())
    };
    for (authorization, why) in [
        (String::new(), none.clone()),
        (good(), none.clone()),
        (format!("Basic {}", good()), none.clone()),
        (
            "Bearer a.b.c".into(),
            parse("it is not a JSON Web Token with an accepted algorithm"),
        ),
        (
            "Bearer eyJhbGciOiJub25lIn0.e30.".into(),
            parse("it is not a JSON Web Token with an accepted algorithm"),
        ),
        (
            format!("Bearer {}", token(2, "k", &json!({}))),
            parse("its signature is not valid"),
        ),
        (
            format!(
                "Bearer {head}.{}",
                signature.chars().rev().collect::<String>()
            ),
            parse("its signature is not valid"),
        ),
        (
            format!("Bearer {}", token(1, "other", &json!({}))),
            parse("its key id is not in the key set"),
        ),
        (
            format!(
                "Bearer {}",
                token(1, "k", &json!({"iss": "https://evil.test"}))
            ),
            claims(
                "issuer validation failed: invalid issuer: expected https://issuer.test, got https://evil.test",
            ),
        ),
        (
            format!("Bearer {}", token(1, "k", &json!({"aud": ["x"]}))),
            claims(
                "audience validation failed: audience mismatch: expected one of [team spare], got [\"x\"]",
            ),
        ),
        (
            format!("Bearer {}", token(1, "k", &json!({"exp": 1}))),
            claims("time claims validation failed: token has expired"),
        ),
        (
            format!("Bearer {}", token(1, "k", &json!({"sub": ""}))),
            "Unauthorized: token has no subject claim".into(),
        ),
    ] {
        let answer = ask(&router, &authorization).await;
        assert_eq!(
            answer.error(),
            (401, "authentication".into(), why),
            "{authorization}"
        );
        assert_eq!(answer.headers.get("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(
        pod.seen().len(),
        2,
        "nothing that was refused reached the pod"
    );
}

#[tokio::test]
async fn everything_below_v1_is_guarded_and_nothing_else() {
    let [pod, issuer] = Pod::several().await;
    issuer.answers(Script::json(200, key_set()));
    let router = guarded(&issuer).pods(&[&pod]).start().await;
    for path in [
        "/v1/models",
        "/v1/models/m",
        "/v1/models/none",
        "/v1/anything",
    ] {
        assert_eq!(router.get(router.port, path).await.status, 401, "{path}");
    }
    let mut client = router.connect().await;
    let bearer = format!("Bearer {}", good());
    client
        .request("GET", "/v1/models", &[("authorization", &bearer)], "")
        .await;
    assert_eq!(client.answer().await.json()["data"][0]["id"], "m");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(router.get(router.port, path).await.status, 200, "{path}");
    }
    assert_eq!(router.get(router.port, "/other").await.status, 404);
    assert_eq!(
        router.get(router.metrics_port, "/metrics").await.status,
        200
    );
}

#[tokio::test]
async fn a_refusal_is_logged_and_counted_and_no_token_is_in_the_log() {
    let [pod, issuer] = Pod::several().await;
    issuer.answers(Script::json(200, key_set()));
    let router = guarded(&issuer).pods(&[&pod]).start().await;
    let tokens = [
        good(),
        token(2, "k", &json!({})),
        token(1, "k", &json!({"exp": 1})),
    ];
    for (number, token) in tokens.iter().enumerate() {
        let (id, bearer) = (format!("t{number}"), format!("Bearer {token}"));
        let headers = [("authorization", bearer.as_str()), ("x-request-id", &id)];
        router.post_with(CHAT, &headers, completion("x")).await;
        router.logged(&id).await;
    }
    let line = router.logged("t1").await;
    assert_eq!(
        (&line["status_code"], &line["error"]["type"]),
        (&401.into(), &"authentication".into())
    );
    let labels = [
        ("status_code", "401"),
        ("error_type", "authentication"),
        ("path", CHAT),
    ];
    let metrics = router.metrics().await;
    assert_eq!(
        metrics.value("kthena_router_requests_total", &labels),
        Some(2.0)
    );
    let all = [router.out.lines(), router.log.lines()].concat().join("\n");
    for part in tokens.iter().flat_map(|token| token.split('.')) {
        assert!(!all.contains(part), "{part}");
    }
}

#[tokio::test]
async fn a_refused_upload_ends_well_and_the_connection_goes_on() {
    let [pod, issuer] = Pod::several().await;
    issuer.answers(Script::json(200, key_set()));
    let router = guarded(&issuer).pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    client
        .request("POST", CHAT, &[], completion(&"x".repeat(4 << 20)))
        .await;
    assert_eq!(client.answer().await.status, 401);
    let bearer = format!("Bearer {}", good());
    client
        .request("POST", CHAT, &[("authorization", &bearer)], completion("x"))
        .await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn an_issuer_that_is_down_does_not_hold_the_start_and_is_asked_again() {
    let [pod, issuer] = Pod::several().await;
    issuer.answers(Script::json(503, "{}"));
    let router = guarded(&issuer).pods(&[&pod]).start().await;
    router
        .log
        .has("cannot fetch the keys of the token issuer")
        .await;
    let bearer = format!("Bearer {}", good());
    let answer = ask(&router, &bearer).await;
    let why = "Unauthorized: no JWKS available for token validation";
    assert_eq!(answer.error(), (401, "authentication".into(), why.into()));
    issuer.answers(Script::json(200, key_set()));
    until("the keys are there", async || {
        (ask(&router, &bearer).await.status == 200).then_some(())
    })
    .await;
    // Down again: the keys stay.
    issuer.refuse();
    assert_eq!(ask(&router, &bearer).await.status, 200);
}

#[tokio::test]
async fn j2_a_claim_of_the_validated_token_is_a_session() {
    let issuer = Pod::start().await;
    issuer.answers(Script::json(200, key_set()));
    let pods: [Pod; 3] = Pod::several().await;
    let sticky =
        "  trafficPolicy:\n    sessionSticky:\n      sources: [{type: JWTClaim, name: session}]\n";
    let all: Vec<&Pod> = pods.iter().collect();
    let router = guarded(&issuer).server(&all, sticky).start().await;
    for session in [json!("a"), json!("b"), json!(7)] {
        let before: Vec<_> = pods.iter().map(|p| p.seen().len()).collect();
        for number in 0..8 {
            // Another token each time, of the same session.
            let changes = json!({"session": session, "jti": number});
            let bearer = format!("Bearer {}", token(1, "k", &changes));
            let headers = [("authorization", bearer.as_str())];
            let answer = router
                .post_with(COMPLETIONS, &headers, completion("x"))
                .await;
            assert_eq!(answer.status, 200);
        }
        let counts = pods
            .iter()
            .zip(before)
            .map(|(p, before)| p.seen().len() - before);
        let mut counts: Vec<_> = counts.collect();
        counts.sort_unstable();
        assert_eq!(counts, [0, 0, 8], "{session}");
    }
}

#[tokio::test]
async fn a_check_of_tokens_that_cannot_work_stops_the_start() {
    for (auth, why) in [
        (
            "{jwksUri: 'https://keys.test/jwks'}",
            "auth: issuer is required when jwksUri is set",
        ),
        (
            "{issuer: i, jwksUri: 'keys.test'}",
            "auth: jwksUri \"keys.test\" must be an https:// or http:// URL",
        ),
        (
            "{issuer: i, jwksUri: 'http://a b/'}",
            "auth.jwksUri \"http://a b/\": it is no URL",
        ),
    ] {
        let mut router = setup().config(&format!("auth: {auth}\n")).launch().await;
        assert_eq!(router.exit_code().await, Some(1));
        let last = router.log.lines().pop().expect("a reason");
        assert!(last.contains(why), "{last}");
    }
}
