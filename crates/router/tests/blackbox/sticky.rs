//! Sessions that stay on their pods, as it shows from outside.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Gauges, Pod, Router, Script, model_server, until};
use std::time::Duration;

/// All kinds of sources but the token, for sessions of five minutes.
const STICKY: &str = "  trafficPolicy:\n    retry: {attempts: 5, retryInterval: 1ms}\n    sessionSticky:\n      \
                      sources:\n      - {type: Header, name: X-Session}\n      - {type: Query, name: session}\n      \
                      - {type: Cookie, name: Session}\n";

/// Sends a request and returns the number of the pod that served it.
async fn served(router: &Router, pods: &[Pod], path: &str, headers: &[(&str, &str)]) -> usize {
    let before: Vec<_> = pods.iter().map(|p| p.seen().len()).collect();
    let answer = router.post_with(path, headers, completion("x")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let took = |(number, pod): (usize, &Pod)| (pod.seen().len() > before[number]).then_some(number);
    let served: Vec<_> = pods.iter().enumerate().filter_map(took).collect();
    assert_eq!(served.len(), 1, "one pod was asked");
    served[0]
}

async fn by_header(router: &Router, pods: &[Pod], session: &str) -> usize {
    served(router, pods, COMPLETIONS, &[("X-SESSION", session)]).await
}

/// Two sessions on two pods, with the numbers of these.
async fn two_sessions(router: &Router, pods: &[Pod]) -> [(String, usize); 2] {
    let first = ("s0".to_owned(), by_header(router, pods, "s0").await);
    for number in 1.. {
        let session = format!("s{number}");
        let pod = by_header(router, pods, &session).await;
        if pod != first.1 {
            return [first, (session, pod)];
        }
    }
    unreachable!("ties are spread")
}

fn refs(pods: &[Pod]) -> Vec<&Pod> {
    pods.iter().collect()
}

/// A setup that prefers no pod: what keeps requests together is the session alone.
fn spread(pods: &[Pod], extra: &str) -> e2e::Setup {
    let config = e2e::scheduler(&[("random", 1)], "{}");
    setup().server(&refs(pods), extra).config(&config)
}

#[tokio::test]
async fn j2_two_sessions_are_isolated_and_each_stays_on_its_pod() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let [(a, pod_a), (b, pod_b)] = two_sessions(&router, &pods).await;
    for _ in 0..10 {
        assert_eq!(by_header(&router, &pods, &a).await, pod_a);
        assert_eq!(by_header(&router, &pods, &b).await, pod_b);
    }
}

#[tokio::test]
async fn j2_header_query_and_cookie_are_asked_in_the_order_of_the_sources() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let [(a, pod_a), (b, pod_b)] = two_sessions(&router, &pods).await;
    let query = |session: &str| format!("{COMPLETIONS}?x=y&session={session}");
    let cookie = |session: &str| format!("other=1; session=wrong-case; Session={session}");
    for _ in 0..6 {
        let ask = async |path: &str, headers: &[(&str, &str)]| {
            served(&router, &pods, path, headers).await
        };
        // A key is a key wherever it stands.
        assert_eq!(ask(&query(&a), &[]).await, pod_a);
        assert_eq!(ask(COMPLETIONS, &[("cookie", &cookie(&b))]).await, pod_b);
        // Header before query before cookie.
        let header_a = ("x-session", a.as_str());
        assert_eq!(
            ask(&query(&b), &[header_a, ("cookie", &cookie(&b))]).await,
            pod_a
        );
        assert_eq!(ask(&query(&b), &[("cookie", &cookie(&a))]).await, pod_b);
        // A blank one is none.
        let blank = ("x-session", "  ");
        assert_eq!(
            ask(&query(""), &[blank, ("cookie", &cookie(&b))]).await,
            pod_b
        );
    }
}

#[tokio::test]
async fn j2_requests_without_a_key_are_spread() {
    let pods: [Pod; 2] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    for _ in 0..40 {
        served(&router, &pods, COMPLETIONS, &[("x-other", "s")]).await;
    }
    // Each is missed once in 10^12 runs.
    assert!(pods.iter().all(|p| !p.seen().is_empty()));
}

#[tokio::test]
async fn j2_without_configuration_nothing_sticks() {
    let pods: [Pod; 2] = Pod::several().await;
    let router = spread(&pods, "").start().await;
    for _ in 0..40 {
        by_header(&router, &pods, "s").await;
    }
    assert!(pods.iter().all(|p| !p.seen().is_empty()));
}

/// A router, after the first request of a session was scored and four more of it were pinned, and another session's first.
async fn after_pinned_requests(pods: &[Pod]) -> Router {
    let router = setup().server(&refs(pods), STICKY).start().await;
    for (session, seed) in [("s", 1), ("s", 2), ("s", 3), ("s", 4), ("s", 5), ("t", 6)] {
        let body = completion(&text(seed, 640));
        let session = [("x-session", session)];
        let answer = router.post_with(COMPLETIONS, &session, body).await;
        assert_eq!(answer.status, 200);
    }
    router
}

#[tokio::test]
async fn d6_a_pinned_request_is_not_scored_and_records_nothing() {
    let pods: [Pod; 2] = Pod::several().await;
    let metrics = after_pinned_requests(&pods).await.metrics().await;
    let count = |name: &str| metrics.count(&format!("kthena_router_prefix_cache_{name}"), &[]);
    assert_eq!(
        count("entries"),
        20.0,
        "of the two first requests, ten each"
    );
    assert_eq!(count("match_ratio_count"), 2.0);
}

#[tokio::test]
async fn h2_a_pinned_request_logs_no_scores() {
    let pods: [Pod; 2] = Pod::several().await;
    let router = after_pinned_requests(&pods).await;
    // Each scored request writes its lines at once: with the last one's all are there.
    let written = async |text: &str| {
        let lines = router.log.lines();
        lines.iter().filter(|l| l.contains(text)).count()
    };
    until("the last request's scores", async || {
        (written("Final Pod Scores:").await >= 2).then_some(())
    })
    .await;
    assert_eq!(written("ScorePlugin: prefix-cache").await, 2);
    assert_eq!(written("Pod: default/m:p0, Score: ").await, 2);
}

#[tokio::test]
async fn d6_with_record_sticky_a_conversation_is_found_after_its_binding_ended() {
    let pods: [Pod; 2] = Pod::several().await;
    let config = e2e::scheduler(&[("prefix-cache", 1)], "{recordSticky: true}");
    let setup = setup().server(&refs(&pods), STICKY).config(&config);
    let router = setup.start().await;
    let pod = by_header(&router, &pods, "s").await;
    let later = "the second turn of the same conversation";
    let session = [("x-session", "s")];
    router.post_with(crate::CHAT, &session, chat(later)).await;
    let wanted = [0, 1].map(|number| Some(if number == pod { 100 } else { 0 }));
    assert_eq!(router.scores("prefix-cache", later).await, wanted);
}

fn chat(text: &str) -> String {
    serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
}

#[tokio::test]
async fn j2_a_session_whose_pod_was_deleted_is_bound_anew() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let gone = by_header(&router, &pods, "s").await;
    let manifest = model_server("m", &refs(&pods), STICKY);
    let others: Vec<_> = manifest
        .lines()
        .filter(|line| !line.contains(&format!("name: p{gone},")))
        .collect();
    router.write("server.yaml", &(others.join("\n") + "\n"));
    until("the pod is gone", async || {
        let page = router.debug("pods").await;
        (page["pods"].as_array().map_or(0, Vec::len) == 2).then_some(())
    })
    .await;
    let next = by_header(&router, &pods, "s").await;
    assert_ne!(next, gone);
    // When it comes back, the session stays where it is now.
    router.write("server.yaml", &manifest);
    until("the pod is back", async || {
        let page = router.debug("pods").await;
        (page["pods"].as_array().map_or(0, Vec::len) == 3).then_some(())
    })
    .await;
    for _ in 0..10 {
        assert_eq!(by_header(&router, &pods, "s").await, next);
    }
}

#[tokio::test]
async fn j2_a_session_whose_pod_is_filtered_moves_on() {
    let pods: [Pod; 2] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let full = by_header(&router, &pods, "s").await;
    let waiting = |waiting| {
        Some(Gauges {
            waiting,
            ..Gauges::default()
        })
    };
    pods[full].shows(waiting(10)).await;
    assert_eq!(by_header(&router, &pods, "s").await, 1 - full);
    pods[full].shows(waiting(0)).await;
    for _ in 0..10 {
        assert_eq!(by_header(&router, &pods, "s").await, 1 - full);
    }
}

#[tokio::test]
async fn j2_a_session_outlives_a_pod_that_fails() {
    for failure in [Script::json(503, "{}"), Script::cut(), Script::reset()] {
        let pods: [Pod; 2] = Pod::several().await;
        let router = setup().server(&refs(&pods), STICKY).start().await;
        let first = by_header(&router, &pods, "s").await;
        let (bad, good) = (&pods[first], &pods[1 - first]);
        bad.answers(failure.clone());
        let asked = bad.seen().len();
        let session = [("x-session", "s"), ("x-request-id", "moved")];
        let answer = router
            .post_with(COMPLETIONS, &session, completion("moved"))
            .await;
        assert_eq!(answer.status, 200, "{failure:?}");
        let line = router.logged("moved").await;
        assert_eq!(line["upstream_attempts"], 2);
        assert_eq!(line["selected_pod"], format!("m:p{}", 1 - first));
        // A kept connection that breaks is replaced once before the pod counts as failed.
        let tried = bad.seen().len();
        assert!((asked + 1..=asked + 2).contains(&tried), "{failure:?}");
        // It was scheduled, so it is recorded; and the session has moved.
        let plan = router.explain(COMPLETIONS, completion("moved")).await;
        assert_eq!(plan["candidates"][1 - first]["scores"]["prefix-cache"], 100);
        for _ in 0..5 {
            assert_eq!(by_header(&router, &pods, "s").await, 1 - first);
        }
        assert_eq!(
            (bad.seen().len(), good.seen().len()),
            (tried, 6),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn j2_a_session_is_bound_to_the_pod_that_served_not_to_one_that_failed() {
    let pods: [Pod; 2] = Pod::several().await;
    let config = e2e::scheduler(&[("gpu-usage", 1)], "{}");
    let busy = Gauges {
        usage: 0.5,
        ..Gauges::default()
    };
    pods[1].preset(Some(busy));
    pods[0].answers(Script::json(503, "{}"));
    let setup = setup().server(&refs(&pods), STICKY).config(&config);
    let router = setup.start().await;
    for count in 1..4 {
        let answer = router
            .post_with(COMPLETIONS, &[("x-session", "s")], completion("x"))
            .await;
        assert_eq!(answer.status, 200);
        assert_eq!((pods[0].seen().len(), pods[1].seen().len()), (1, count));
    }
}

#[tokio::test]
async fn j2_when_every_pod_fails_the_last_engines_answer_goes_to_the_client() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let bound = by_header(&router, &pods, "s").await;
    for pod in &pods {
        pod.answers(Script::cut());
    }
    pods[bound].answers(Script::json(429, "{\"busy\":true}"));
    let id = [("x-session", "s"), ("x-request-id", "busy")];
    let answer = router.post_with(COMPLETIONS, &id, completion("x")).await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (429, "{\"busy\":true}")
    );
    let line = router.logged("busy").await;
    assert_eq!(line["selected_pod"], format!("m:p{bound}"));
    assert_eq!(line["upstream_attempts"], 3, "each pod once");
}

#[tokio::test]
async fn j2_an_error_of_the_client_is_no_reason_to_move() {
    let pods: [Pod; 3] = Pod::several().await;
    let router = spread(&pods, STICKY).start().await;
    let bound = by_header(&router, &pods, "s").await;
    for pod in &pods {
        pod.answers(Script::json(400, "{}"));
    }
    for count in 2..6 {
        let session = [("x-session", "s")];
        let answer = router
            .post_with(COMPLETIONS, &session, completion("x"))
            .await;
        assert_eq!((answer.status, pods[bound].seen().len()), (400, count));
    }
}

#[tokio::test]
async fn j2_retry_attempts_caps_the_pods_of_a_session_too() {
    let pods: [Pod; 3] = Pod::several().await;
    let once = STICKY.replace("attempts: 5", "attempts: 1");
    let router = spread(&pods, &once).start().await;
    let bound = by_header(&router, &pods, "s").await;
    pods.iter().for_each(|p| p.answers(Script::json(503, "{}")));
    let before: usize = pods.iter().map(|p| p.seen().len()).sum();
    let answer = router
        .post_with(COMPLETIONS, &[("x-session", "s")], completion("x"))
        .await;
    let after: usize = pods.iter().map(|p| p.seen().len()).sum();
    assert_eq!(
        (answer.status, after, pods[bound].seen().len()),
        (503, before + 1, 2)
    );
}

#[tokio::test]
async fn j2_the_pod_of_a_session_is_one_of_the_attempts() {
    let pods: [Pod; 3] = Pod::several().await;
    let policy = STICKY.replace(
        "attempts: 5, retryInterval: 1ms",
        "attempts: 2, retryInterval: 300ms",
    );
    let router = spread(&pods, &policy).start().await;
    by_header(&router, &pods, "s").await;
    pods.iter().for_each(|p| p.answers(Script::json(503, "{}")));
    let session = [("x-session", "s")];
    let answer = router
        .post_with(COMPLETIONS, &session, completion("x"))
        .await;
    assert_eq!(answer.status, 503);
    let mut at: Vec<_> = pods.iter().flat_map(Pod::seen).map(|s| s.at).collect();
    at.sort_unstable();
    assert_eq!(at.len(), 3, "one before, and two attempts");
    let gap = at[2] - at[1];
    assert!(gap >= Duration::from_millis(250), "{gap:?}");
}

#[tokio::test]
async fn j2_weights_are_not_collapsed() {
    let pods: [Pod; 4] = Pod::several().await;
    let (left, right) = pods.split_at(2);
    let route = e2e::model_route("m", "m", "left").replace(
        "    - modelServerName: left\n",
        "    - {modelServerName: left, weight: 50}\n    - {modelServerName: right, weight: 50}\n",
    );
    let config = e2e::scheduler(&[("random", 1)], "{}");
    let router = setup()
        .config(&config)
        .manifest("route.yaml", &route)
        .manifest("left.yaml", &model_server("left", &refs(left), STICKY))
        .manifest("right.yaml", &model_server("right", &refs(right), STICKY))
        .start()
        .await;
    for _ in 0..60 {
        by_header(&router, &pods, "s").await;
    }
    // The session has one pod of each server, and both servers get their share.
    for server in [left, right] {
        let mut counts: Vec<_> = server.iter().map(|p| p.seen().len()).collect();
        counts.sort_unstable();
        assert_eq!(counts[0], 0, "{counts:?}");
        assert!((10..50).contains(&counts[1]), "{counts:?}");
    }
}

#[tokio::test]
async fn the_pod_is_named_in_the_response_where_that_is_wanted() {
    let [pod] = Pod::several().await;
    let name = "X-Kthena-Backend-Pod";
    pod.answers(Script::reply(200, &[(name, "an engine's own")], "{}"));
    let wanted = setup()
        .pods(&[&pod])
        .env("ROUTER_EXPOSE_BACKEND_POD_HEADER", "true");
    let router = wanted.start().await;
    let answer = router.post(COMPLETIONS, completion("x")).await;
    assert_eq!(answer.headers.all(name), ["m:p0"]);
    let router = setup().pods(&[&pod]).start().await;
    pod.answers(Script::json(200, "{}"));
    let answer = router.post(COMPLETIONS, completion("x")).await;
    assert_eq!(answer.headers.get(name), None);
}
