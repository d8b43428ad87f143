//! Sessions that several routers share through a Redis.

use crate::{COMPLETIONS, completion, setup};
use e2e::{Pod, Redis, Router, Setup, until};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Sessions by header that last this many seconds.
fn sticky(seconds: u32) -> String {
    format!(
        "  trafficPolicy:\n    sessionSticky:\n      sessionAffinitySeconds: {seconds}\n      sources: [{{type: Header, \
         name: X-Session}}]\n"
    )
}

/// A router that prefers no pod and keeps its sessions in this Redis.
fn sharing(pods: &[Pod], seconds: u32, address: &str) -> Setup {
    let pods: Vec<&Pod> = pods.iter().collect();
    let config = e2e::scheduler(&[("random", 1)], "{}")
        + &format!("sessionSticky: {{backend: redis, redis: {{address: '{address}'}}}}\n");
    setup().server(&pods, &sticky(seconds)).config(&config)
}

async fn ask(router: &Router, session: &str) -> String {
    let headers = [("x-session", session), ("x-request-id", session)];
    let answer = router
        .post_with(COMPLETIONS, &headers, completion("x"))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
        .headers
        .get("x-kthena-backend-pod")
        .expect("its name")
        .to_owned()
}

async fn bindings(redis: &Redis) -> Vec<BTreeMap<String, String>> {
    let keys: Vec<String> = redis.ask(&["KEYS", "kthena/sticky/*"]).await;
    let mut all = Vec::new();
    for key in keys {
        all.push(redis.ask(&["HGETALL", &key]).await);
    }
    all
}

const SHOWS: (&str, &str) = ("ROUTER_EXPOSE_BACKEND_POD_HEADER", "true");

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_two_routers_with_one_redis_agree() {
    let redis = Redis::start().await;
    let pods: [Pod; 3] = Pod::several().await;
    let start = || {
        sharing(&pods, 300, &redis.address())
            .env(SHOWS.0, SHOWS.1)
            .start()
    };
    let (one, two) = (start().await, start().await);
    let mut used = BTreeSet::new();
    for number in 0..12 {
        let session = format!("s{number}");
        let pod = ask(&one, &session).await;
        for router in [&two, &one, &two] {
            assert_eq!(ask(router, &session).await, pod, "{session}");
        }
        used.insert(pod);
    }
    assert!(used.len() > 1, "sessions are spread: {used:?}");
    assert_eq!(bindings(&redis).await.len(), 12);
    // They outlive the routers.
    let before = ask(&one, "s0").await;
    let one = one.restart().await;
    assert_eq!(ask(&one, "s0").await, before);
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_of_concurrent_first_requests_one_binds_the_session() {
    let redis = Redis::start().await;
    let pods: [Pod; 3] = Pod::several().await;
    let router = sharing(&pods, 300, &redis.address())
        .env(SHOWS.0, SHOWS.1)
        .start()
        .await;
    let mut clients = Vec::new();
    for _ in 0..16 {
        clients.push(router.connect().await);
    }
    for client in &mut clients {
        let headers = [("x-session", "s")];
        client
            .request("POST", COMPLETIONS, &headers, completion("x"))
            .await;
    }
    for mut client in clients {
        assert_eq!(
            client.answer().await.status,
            200,
            "the losers are served, too"
        );
    }
    let bound = &bindings(&redis).await[0]["pod"];
    for _ in 0..5 {
        assert_eq!(ask(&router, "s").await, *bound);
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_binding_that_has_expired_is_made_anew() {
    let redis = Redis::start().await;
    let pods: [Pod; 2] = Pod::several().await;
    let router = sharing(&pods, 1, &redis.address())
        .env(SHOWS.0, SHOWS.1)
        .start()
        .await;
    let mut used = BTreeSet::new();
    // Both pods are used after a few rounds; with 20 the test fails once in 500,000 runs.
    for _ in 0..20 {
        let pod = ask(&router, "s").await;
        assert_eq!(ask(&router, "s").await, pod);
        used.insert(pod);
        if used.len() == 2 {
            return;
        }
        until("the binding has expired", async || {
            bindings(&redis).await.is_empty().then_some(())
        })
        .await;
    }
    panic!("the session never moved: {used:?}");
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_requests_are_served_while_redis_is_away_and_bound_when_it_is_back() {
    let mut redis = Redis::start().await;
    let pods: [Pod; 2] = Pod::several().await;
    let router = sharing(&pods, 300, &redis.address())
        .env(SHOWS.0, SHOWS.1)
        .start()
        .await;
    ask(&router, "s").await;
    let errors = async |stage: &str| {
        let metrics = router.metrics().await;
        metrics.count(
            "kthena_router_session_sticky_errors_total",
            &[("stage", stage)],
        )
    };
    assert_eq!(errors("lookup").await, 0.0);
    // First it hangs, then it is gone.
    redis.freeze();
    let began = Instant::now();
    for _ in 0..5 {
        ask(&router, "s").await;
    }
    // 50 ms each, and room for a busy machine.
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!((errors("lookup").await, errors("commit").await), (5.0, 0.0));
    redis.kill().await;
    let mut used = BTreeSet::new();
    for _ in 0..40 {
        used.insert(ask(&router, "s").await);
    }
    assert_eq!(used.len(), 2, "without bindings requests are spread");
    assert_eq!(errors("lookup").await, 45.0);
    let said = "session sticky: the store does not answer";
    let lines = router.log.lines();
    assert_eq!(
        lines.iter().filter(|l| l.contains(said)).count(),
        1,
        "one line a minute"
    );
    redis.again().await;
    until("the session is bound again", async || {
        ask(&router, "s").await;
        (!bindings(&redis).await.is_empty()).then_some(())
    })
    .await;
    let bound = ask(&router, "s").await;
    for _ in 0..10 {
        assert_eq!(ask(&router, "s").await, bound);
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_a_redis_with_a_password_is_told_it_and_nobody_else_is() {
    let redis = Redis::start_with("s3cret").await;
    let pods: [Pod; 2] = Pod::several().await;
    let setup = || sharing(&pods, 300, &redis.address()).env(SHOWS.0, SHOWS.1);
    let router = setup().env("REDIS_PASSWORD", "s3cret").start().await;
    let bound = ask(&router, "s").await;
    assert_eq!(bindings(&redis).await[0]["pod"], bound);
    for page in ["/debug/router", "/debug/config_dump/modelservers"] {
        let text = router.get(router.debug_port, page).await.text();
        assert!(!text.contains("s3cret"), "{text}");
    }
    let said = router.log.lines().concat();
    assert!(!said.contains("s3cret"), "{said}");
    for password in ["", "wr0ng"] {
        let mut router = setup().env("REDIS_PASSWORD", password).launch().await;
        assert_eq!(router.exit_code().await, Some(1));
        let last = router.log.lines().pop().expect("a reason");
        assert!(last.contains("] redis ping for session sticky: "), "{last}");
        assert!(!last.contains("wr0ng"), "{last}");
    }
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_without_redis_at_the_start_there_is_no_start() {
    let mut redis = Redis::start().await;
    redis.kill().await;
    let mut router = sharing(&[], 300, &redis.address()).launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    let last = router.log.lines().pop().expect("a reason");
    assert!(last.contains("] redis ping for session sticky: "), "{last}");
}

#[tokio::test]
#[cfg_attr(not(redis_server), ignore = "no redis-server on the PATH")]
async fn j2_explain_looks_at_a_session_without_touching_it() {
    let redis = Redis::start().await;
    let pods: [Pod; 2] = Pod::several().await;
    let router = sharing(&pods, 300, &redis.address()).start().await;
    let session = [("x-session", "s")];
    let asked = router.post_with(COMPLETIONS, &session, completion("x"));
    assert_eq!(asked.await.status, 200);
    let keys: Vec<String> = redis.ask(&["KEYS", "kthena/sticky/*"]).await;
    let _: i64 = redis.ask(&["EXPIRE", &keys[0], "50"]).await;
    let mut client = e2e::Client::connect(router.debug_port).await;
    let path = format!("/debug/explain?path={COMPLETIONS}");
    client
        .request("POST", &path, &session, completion("x"))
        .await;
    let plan = client.answer().await.json();
    assert_eq!(plan["session"]["survives"], true, "{plan}");
    assert_eq!(plan["session"]["pod"], plan["attempts"][0]);
    let ttl: u64 = redis.ask(&["TTL", &keys[0]]).await;
    assert!(ttl <= 50, "looking is not using: {ttl}");
}

#[tokio::test]
async fn j2_a_store_that_does_not_exist_stops_the_start() {
    for (store, why) in [
        (
            "{backend: redis}",
            "sessionSticky.redis.address is required when backend is redis",
        ),
        (
            "{backend: etcd}",
            "sessionSticky.backend \"etcd\" is invalid (use memory or redis)",
        ),
    ] {
        let config = format!("sessionSticky: {store}\n");
        let mut router = setup().config(&config).launch().await;
        assert_eq!(router.exit_code().await, Some(1));
        let last = router.log.lines().pop().expect("a reason");
        assert!(
            last.contains("] failed to parse router config: ") && last.ends_with(why),
            "{last}"
        );
    }
}
