//! What a running router tells of its decisions on the debug listener.

use crate::{CHAT, COMPLETIONS, completion, setup, streamed, text};
use e2e::{Client, Gauges, Pod, Router, Script, event, scheduler, until};
use serde_json::{Value, json};

/// A page of the debug listener.
async fn page(router: &Router, path: &str) -> Value {
    let answer = router.get(router.debug_port, path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.json()
}

/// The decision of the request with this id. A record is complete a moment after the client has its answer.
async fn decision(router: &Router, id: &str) -> Value {
    until("a decision", async || {
        let all = page(router, "/debug/decisions").await;
        let mut all = all["decisions"].as_array().unwrap().iter();
        all.find(|d| d["requestId"] == id).cloned()
    })
    .await
}

async fn ask(router: &Router, id: &str, prompt: &str) {
    let headers = [("x-request-id", id)];
    let answer = router
        .post_with(COMPLETIONS, &headers, completion(prompt))
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn what_the_prefix_cache_holds() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    let before = page(&router, "/debug/prefix-cache").await;
    assert_eq!(
        before["configuration"],
        json!({"blockSizeToHash": 64, "maxBlocksToMatch": 128, "topKMatches": 5, "maxHashCacheSize": 50000, "weight": 1})
    );
    let idle = json!({"requests": 0, "matchedBlocks": 0, "hashedBlocks": 0, "ratio": null, "evictions": 0});
    assert_eq!(
        before["ratio"],
        json!({"1m": idle, "5m": idle, "15m": idle})
    );
    let prompt = text(1, 640);
    ask(&router, "1", &prompt).await;
    ask(&router, "2", &(prompt + "and more")).await;
    let after = page(&router, "/debug/prefix-cache").await;
    let served = usize::from(a.seen().is_empty());
    let entries = |n: usize| if n == served { 11 } else { 0 };
    for n in [0, 1] {
        let list = json!({"pod": format!("default/m:p{n}"), "entries": entries(n), "capacity": 50000, "evictions": 0});
        assert_eq!(after["pods"][n], list);
    }
    assert_eq!(
        (&after["entries"], &after["evictions"]),
        (&json!(11), &json!(0))
    );
    let both = json!({"requests": 2, "matchedBlocks": 10, "hashedBlocks": 21, "ratio": 10.0 / 21.0, "evictions": 0});
    assert_eq!(after["workingSet"], Value::Null, "nothing was evicted");
    assert_eq!(after["ratio"], json!({"1m": both, "5m": both, "15m": both}));
}

#[tokio::test]
async fn shared_prefixes_and_their_text_only_where_it_is_wanted() {
    for shows in [false, true] {
        let pod = Pod::start().await;
        let flags: &[&str] = if shows {
            &["--debug-show-prompts"]
        } else {
            &[]
        };
        let router = setup().pods(&[&pod]).flags(flags).start().await;
        let shared = text(7, 640);
        for seed in [1, 2] {
            ask(&router, "x", &format!("{shared}{}", text(seed, 200))).await;
        }
        let plan = router.explain(COMPLETIONS, completion(&shared)).await;
        let hash = plan["prompt"]["hashes"][9].clone();
        let shown = match shows {
            true => json!(shared[..80]),
            false => Value::Null,
        };
        let all = page(&router, "/debug/prefix-cache").await;
        assert_eq!(
            all["prefixes"],
            json!([{"hash": hash, "blocks": 10, "pods": 1, "text": shown}])
        );
        for path in ["/debug/decisions", "/debug/prompts"] {
            let page = page(&router, path).await.to_string();
            assert!(!page.contains(&shared[..16]), "{page}");
        }
        assert!(!router.metrics().await.page.contains(&shared[..16]));
    }
}

#[tokio::test]
async fn without_the_plugin_there_is_nothing_to_show() {
    let pod = Pod::start().await;
    let config = scheduler(&[("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    ask(&router, "1", "x").await;
    let all = page(&router, "/debug/prefix-cache").await;
    assert_eq!(all["configuration"], Value::Null);
    assert_eq!((&all["pods"], &all["prefixes"]), (&json!([]), &json!([])));
    assert_eq!(all["ratio"]["1m"]["ratio"], Value::Null);
    assert_eq!(decision(&router, "1").await["hashedBlocks"], 0);
}

#[tokio::test]
async fn why_a_request_went_where_it_went() {
    let [a, b] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 2), ("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&a, &b]).config(&config).start().await;
    let prompt = text(1, 640);
    ask(&router, "first", &prompt).await;
    ask(
        &router,
        "second",
        &(prompt[..320].to_owned() + &text(2, 320)),
    )
    .await;
    let served = usize::from(a.seen().is_empty());
    let (pod, other) = (
        format!("default/m:p{served}"),
        format!("default/m:p{}", 1 - served),
    );
    let seen = decision(&router, "second").await;
    let scores = json!({"prefix-cache": 50, "gpu-usage": 100});
    for (key, value) in [
        ("model", json!("m")),
        ("modelServer", json!("default/m")),
        ("pod", json!(pod)),
        ("prefillPod", Value::Null),
        ("total", json!(200)),
        ("scores", scores.clone()),
        ("matchedBlocks", json!(5)),
        ("hashedBlocks", json!(10)),
        ("attempt", json!(1)),
        ("pinned", json!(false)),
        ("status", json!(200)),
        ("ttftMs", Value::Null),
        ("promptTokens", json!(9)),
        ("cachedTokens", Value::Null),
        ("filtered", json!({})),
    ] {
        assert_eq!(seen[key], value, "{key}");
    }
    let none = json!({"prefix-cache": 0, "gpu-usage": 100});
    assert_eq!(
        seen["candidates"],
        json!([
            {"pod": pod, "role": null, "total": 200, "scores": scores, "matchedBlocks": 5},
            {"pod": other, "role": null, "total": 100, "scores": none, "matchedBlocks": 0},
        ])
    );
    let first = decision(&router, "first").await;
    assert!(first["at"].as_f64() <= seen["at"].as_f64());
    let all = page(&router, "/debug/decisions").await;
    assert_eq!(all["decisions"][0]["requestId"], "second", "newest first");
}

#[tokio::test]
async fn in_a_large_fleet_the_pod_that_holds_the_prompt_is_told_wherever_it_came() {
    let pods: [Pod; 20] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 1), ("gpu-usage", 3)], "{}");
    let router = setup().pods(&[&pods[0]]).config(&config).start().await;
    let prompt = text(1, 640);
    ask(&router, "first", &prompt).await;
    let all: Vec<&Pod> = pods.iter().collect();
    router.set_pods(&all).await;
    let full = Gauges {
        usage: 1.0,
        ..Gauges::default()
    };
    pods[0].shows(Some(full)).await;
    ask(&router, "second", &prompt).await;
    let seen = decision(&router, "second").await;
    let candidates = seen["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &seen["matchedBlocks"]), (16, &json!(0)));
    let last = &candidates[15];
    assert_eq!(
        (&last["pod"], &last["matchedBlocks"]),
        (&json!("default/m:p0"), &json!(10))
    );
}

#[tokio::test]
async fn pods_that_a_filter_dropped_are_counted() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    let full = Gauges {
        waiting: 100,
        ..Gauges::default()
    };
    a.shows(Some(full)).await;
    ask(&router, "1", "x").await;
    let seen = decision(&router, "1").await;
    assert_eq!(seen["filtered"], json!({"least-request": 1}));
}

#[tokio::test]
async fn what_came_of_a_request() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":1,"total_tokens":41,"prompt_tokens_details":{"cached_tokens":32}}}"#;
    pod.next(Script::events(&[
        &event("a"),
        &format!("{usage}\n\n"),
        "data: [DONE]\n\n",
    ]));
    router
        .post_with(CHAT, &[("x-request-id", "good")], streamed("x"))
        .await;
    let good = decision(&router, "good").await;
    assert_eq!(
        (&good["promptTokens"], &good["cachedTokens"]),
        (&json!(40), &json!(32))
    );
    assert!(good["ttftMs"].as_f64().is_some_and(|ms| ms > 0.0), "{good}");
    pod.next(Script::json(422, "{}"));
    router
        .post_with(CHAT, &[("x-request-id", "bad")], streamed("x"))
        .await;
    let bad = decision(&router, "bad").await;
    assert_eq!(
        (&bad["status"], &bad["promptTokens"]),
        (&json!(422), &Value::Null)
    );
}

#[tokio::test]
async fn the_last_decisions_only_and_not_more_than_fifty_a_second() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let mut client: Client = router.connect().await;
    let started = std::time::Instant::now();
    for _ in 0..400 {
        client
            .request("POST", COMPLETIONS, &[], completion("x"))
            .await;
        client.answer().await;
    }
    let seconds = started.elapsed().as_secs() as usize + 2;
    let all = page(&router, "/debug/decisions").await;
    let kept = all["decisions"].as_array().unwrap().len();
    assert!(
        (50..=200.min(50 * seconds)).contains(&kept),
        "{kept} in {seconds} s"
    );
    let ratio = &page(&router, "/debug/prefix-cache").await["ratio"]["1m"];
    assert_eq!(ratio["requests"], 400, "what is not sampled is counted");
}

#[tokio::test]
async fn how_far_prompts_are_the_same() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let shared = text(1, 2000);
    for (number, seed) in [(0, 2), (1, 3), (2, 4)] {
        let prompt = match number {
            0 => shared[..100].to_owned() + &text(seed, 900),
            _ => shared.clone() + &text(seed, 48),
        };
        ask(&router, "x", &prompt).await;
    }
    let all = page(&router, "/debug/prompts").await;
    let spread =
        |min: u32, median: u32, max: u32| json!({"min": min, "median": median, "max": max});
    assert_eq!(
        all["models"],
        json!([{
            "model": "m", "samples": 3, "promptBytes": spread(1000, 2048, 2048),
            "pairBytes": spread(100, 100, 1984), "bestBytes": spread(100, 1984, 1984), "resumes": null, "exactBelow": 1024,
        }])
    );
}
