//! The response header `x-kthena-decision`.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Answer, Pod, Router, Script, scheduler};

const EXPLAIN: (&str, &str) = ("x-kthena-explain", "1");

/// The header of an answer.
fn told(answer: &Answer) -> Option<&str> {
    answer.headers.get("x-kthena-decision")
}

/// A router with this choice of responses, and what its pods are scored by.
async fn router(when: &str, pods: &[&Pod]) -> Router {
    let config = scheduler(&[("prefix-cache", 2), ("gpu-usage", 1)], "{}");
    let setup = setup().pods(pods).config(&config);
    setup.flags(&["--decision-header", when]).start().await
}

async fn ask(router: &Router, headers: &[(&str, &str)], prompt: &str) -> Answer {
    router
        .post_with(COMPLETIONS, headers, completion(prompt))
        .await
}

#[tokio::test]
async fn a_decision_in_one_line() {
    let pod = Pod::start().await;
    let router = router("always", &[&pod]).await;
    let prompt = text(1, 2000);
    let first = ask(&router, &[], &prompt).await;
    assert_eq!(
        told(&first),
        Some(
            "pod=\"default/m:p0\", total=100, prefix-cache=0, gpu-usage=100, matched=0, hashed=32, attempt=1"
        )
    );
    let other = prompt[..24 * 64].to_owned() + &text(2, 2000 - 24 * 64);
    let second = ask(&router, &[EXPLAIN], &other).await;
    assert_eq!(
        told(&second),
        Some(
            "pod=\"default/m:p0\", total=250, prefix-cache=75, gpu-usage=100, matched=24, hashed=32, attempt=1"
        )
    );
    assert!(
        pod.seen()
            .iter()
            .all(|seen| seen.headers.get(EXPLAIN.0).is_none())
    );
}

#[tokio::test]
async fn on_request_only_those_who_ask_are_told() {
    let pod = Pod::start().await;
    let router = router("on-request", &[&pod]).await;
    assert_eq!(told(&ask(&router, &[], "x").await), None);
    assert_eq!(
        told(&ask(&router, &[("x-kthena-explain", "0")], "x").await),
        None
    );
    assert!(told(&ask(&router, &[EXPLAIN], "x").await).is_some());
    assert!(
        pod.seen()
            .iter()
            .all(|seen| seen.headers.get(EXPLAIN.0).is_none())
    );
}

#[tokio::test]
async fn by_default_nobody_is_told_and_the_wish_is_a_header_like_any_other() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    assert_eq!(told(&ask(&router, &[EXPLAIN], "x").await), None);
    assert_eq!(pod.only().headers.get(EXPLAIN.0), Some("1"));
}

#[tokio::test]
async fn an_engine_cannot_forge_a_decision() {
    let pod = Pod::start().await;
    let forged = [("x-kthena-decision", "pod=\"default/other\"")];
    pod.answers(Script::reply(200, &forged, "{}"));
    for when in ["never", "on-request", "always"] {
        let router = router(when, &[&pod]).await;
        let answer = ask(&router, &[], "x").await;
        let told = told(&answer).map(|told| told.starts_with("pod=\"default/m:p0\""));
        assert_eq!(told, (when == "always").then_some(true), "{when}");
    }
}

#[tokio::test]
async fn an_error_tells_too_once_a_pod_was_asked() {
    let [a, b] = Pod::several().await;
    let router = router("always", &[&a, &b]).await;
    a.answers(Script::cut());
    b.answers(Script::cut());
    let answer = ask(&router, &[], "x").await;
    assert_eq!(answer.status, 503);
    let told = told(&answer).unwrap();
    assert!(told.starts_with("pod=\"default/m:p"), "{told}");
    assert!(told.ends_with("hashed=1, attempt=2"), "{told}");
    let unknown = router.post(COMPLETIONS, r#"{"model":"x"}"#).await;
    assert_eq!((unknown.status, self::told(&unknown)), (404, None));
}

#[tokio::test]
async fn the_second_pod_is_the_one_that_is_told() {
    let [a, b] = Pod::several().await;
    let router = router("always", &[&a, &b]).await;
    a.answers(Script::cut());
    for _ in 0..8 {
        let answer = ask(&router, &[], "x").await;
        assert!(told(&answer).unwrap().starts_with("pod=\"default/m:p1\""));
    }
}

#[tokio::test]
async fn a_session_is_told_as_the_reason() {
    let pod = Pod::start().await;
    let sticky =
        "  trafficPolicy:\n    sessionSticky:\n      sources: [{type: Header, name: x-session}]\n";
    let setup = setup().server(&[&pod], sticky);
    let router = setup.flags(&["--decision-header", "always"]).start().await;
    let session = [("x-session", "s")];
    let first = ask(&router, &session, "x").await;
    assert!(told(&first).unwrap().contains("prefix-cache=0"));
    let second = ask(&router, &session, "x").await;
    assert_eq!(
        told(&second),
        Some("pod=\"default/m:p0\", pinned, attempt=1")
    );
}

#[tokio::test]
async fn a_pair_is_told_with_both_names() {
    let (prefill, decode) = (Pod::start().await, Pod::start().await);
    let pods = [("p0", &prefill), ("d0", &decode)];
    let setup = crate::pair::with("vLLM", &pods, "");
    let router = setup.flags(&["--decision-header", "always"]).start().await;
    let answer = ask(&router, &[EXPLAIN], "x").await;
    assert_eq!(
        told(&answer),
        Some(
            "pod=\"default/m:d0\", prefill-pod=\"default/m:p0\", total=0, prefix-cache=0, matched=0, hashed=1, attempt=1"
        )
    );
    for pod in [&prefill, &decode] {
        assert_eq!(pod.only().headers.get(EXPLAIN.0), None);
    }
}
