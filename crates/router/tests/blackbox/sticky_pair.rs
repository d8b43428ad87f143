//! Sessions of servers whose prefill and decode are done by different pods.

use crate::pair::{Pairs, connector, endpoint};
use crate::{COMPLETIONS, completion, text};
use e2e::Script;

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
