//! Sessions of servers whose prefill and decode are done by different pods.

use crate::pair::{Pairs, connector, endpoint};
use crate::{COMPLETIONS, completion, text};
use e2e::{Client, Script};
use serde_json::json;

const STICKY: &str = "  trafficPolicy:\n    retry: {attempts: 5, retryInterval: 1ms}\n    sessionSticky:\n      \
                      sources: [{type: Header, name: X-Session}]\n";

async fn pairs() -> Pairs {
    Pairs::start("vLLM", &(connector("http") + STICKY)).await
}

/// Sends a prompt that nobody has seen; returns the pair that served it.
async fn ask(pairs: &Pairs, session: &str, number: u64) -> [String; 2] {
    let id = format!("{session}-{number}");
    let headers = [("x-session", session), ("x-request-id", &id)];
    let body = completion(&text(number + 1, 256));
    let answer = pairs.router.post_with(COMPLETIONS, &headers, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let line = pairs.router.logged(&id).await;
    [
        endpoint(&line["prefill_pod"]),
        endpoint(&line["selected_pod"]),
    ]
}

#[tokio::test]
async fn j2_the_pair_of_a_session_is_kept() {
    let pairs = pairs().await;
    let first = ask(&pairs, "s", 0).await;
    for number in 1..10 {
        assert_eq!(ask(&pairs, "s", number).await, first);
    }
    let mut asked = pairs.asked();
    asked.sort_unstable();
    assert_eq!(asked, [0, 0, 10, 10]);
    // Of the ten one was scored and recorded, four blocks for each of both pods.
    pairs.quiet().await;
    let metrics = pairs.router.metrics().await;
    let entries = metrics.count("kthena_router_prefix_cache_entries", &[]);
    assert_eq!(entries, 8.0, "d6: pinned pairs record nothing");
}

#[tokio::test]
async fn j2_a_session_outlives_either_pod_of_its_pair() {
    for role in 0..2 {
        let pairs = pairs().await;
        let first = ask(&pairs, "s", 0).await;
        let bound = usize::from(first[0] == "p1");
        let bad = [&pairs.prefill, &pairs.decode][role];
        bad[bound].answers(Script::json(503, "{}"));
        let next = ask(&pairs, "s", 1).await;
        assert_eq!(next, [format!("p{}", 1 - bound), format!("d{}", 1 - bound)]);
        let seen = bad[bound].seen().len();
        for number in 2..6 {
            assert_eq!(ask(&pairs, "s", number).await, next);
        }
        assert_eq!(bad[bound].seen().len(), seen, "it is not asked again");
    }
}

#[tokio::test]
async fn j2_an_error_of_the_client_on_the_prefill_pod_keeps_the_pair() {
    let pairs = pairs().await;
    let first = ask(&pairs, "s", 0).await;
    let bound = usize::from(first[0] == "p1");
    let session = [("x-session", "s")];
    pairs.prefill[bound].answers(Script::json(400, "{}"));
    let answer = pairs
        .router
        .post_with(COMPLETIONS, &session, completion("x"));
    assert_eq!(answer.await.status, 400);
    pairs.prefill[bound].answers(Script::json(200, "{}"));
    let body = completion(&text(9, 256));
    let plan = explained(&pairs, body).await;
    let (prefill, decode) = (format!("default/m:p{bound}"), format!("default/m:d{bound}"));
    let session =
        json!({"source": "Header", "pod": decode, "survives": true, "prefillPod": prefill});
    assert_eq!(plan["session"], session);
    let pair = json!({"prefill": prefill, "decode": decode});
    assert_eq!(plan["attempts"][0], pair, "the bound pair is the first");
    assert_eq!(plan["attempts"].as_array().map(Vec::len), Some(2));
}

/// How a completion of session `s` would be scheduled.
async fn explained(pairs: &Pairs, body: String) -> serde_json::Value {
    let mut client = Client::connect(pairs.router.debug_port).await;
    let path = format!("/debug/explain?path={COMPLETIONS}");
    let session = [("x-session", "s")];
    client.request("POST", &path, &session, body).await;
    client.answer().await.json()
}

/// Uploads a form; returns the decode pod that served it.
async fn upload(pairs: &Pairs, session: &str, id: &str) -> String {
    let form = "--XX\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--XX--\r\n";
    let headers = [
        ("content-type", "multipart/form-data; boundary=XX"),
        ("x-session", session),
        ("x-request-id", id),
    ];
    let path = "/v1/audio/transcriptions";
    let answer = pairs.router.post_with(path, &headers, form).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    endpoint(&pairs.router.logged(id).await["selected_pod"])
}

#[tokio::test]
async fn j2_a_form_keeps_the_pair_of_its_session_too() {
    let pairs = pairs().await;
    for session in 0..8 {
        let session = format!("s{session}");
        // The first one binds the pair, whatever it is; the others follow.
        let decode = match session.as_bytes()[1] % 2 {
            0 => upload(&pairs, &session, &format!("{session}-a")).await,
            _ => ask(&pairs, &session, 1).await[1].clone(),
        };
        for turn in 0..4 {
            let id = format!("{session}-form-{turn}");
            assert_eq!(upload(&pairs, &session, &id).await, decode);
            let json = ask(&pairs, &session, 10 + turn).await;
            let prefill = decode.replace('d', "p");
            assert_eq!(json, [prefill, decode.clone()]);
        }
    }
}

#[tokio::test]
async fn j2_a_form_moves_its_session_when_the_pod_fails() {
    let pairs = pairs().await;
    let first = upload(&pairs, "s", "first").await;
    let bound = usize::from(first == "d1");
    pairs.decode[bound].answers(Script::json(503, "{}"));
    let other = format!("d{}", 1 - bound);
    assert_eq!(upload(&pairs, "s", "second").await, other);
    let seen = pairs.decode[bound].seen().len();
    assert_eq!(upload(&pairs, "s", "third").await, other);
    assert_eq!(
        pairs.decode[bound].seen().len(),
        seen,
        "it is not asked again"
    );
}
