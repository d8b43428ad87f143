//! The debug pages, the model list and the health checks.

use crate::{CHAT, completion, setup};
use e2e::{Client, Gauges, Pod, model_route};
use serde_json::{Value, json};

#[tokio::test]
async fn the_lists_of_what_the_router_knows() {
    let pod = Pod::start().await;
    let router = setup().server(&[&pod], "  model: real\n").start().await;
    let gauges = Gauges {
        waiting: 3,
        running: 2,
        usage: 0.5,
        ..Gauges::default()
    };
    pod.shows(Some(gauges)).await;
    let pods = router.debug("pods").await;
    let first = &pods["pods"][0];
    for (key, value) in [
        ("name", json!("m:p0")),
        ("namespace", json!("default")),
        ("engine", json!("vLLM")),
        ("models", json!(["m"])),
        ("modelServers", json!(["default/m"])),
        ("metricsKnown", json!(true)),
        ("inFlight", json!(0)),
    ] {
        assert_eq!(first[key], value, "{key}");
    }
    let metrics = &first["metrics"];
    assert_eq!(
        (
            &metrics["requestWaitingNum"],
            &metrics["requestRunningNum"],
            &metrics["gpuCacheUsage"]
        ),
        (&json!(3), &json!(2), &json!(0.5))
    );
    assert!(first["metricsAgeMs"].is_u64(), "{first}");
    let alone = router.debug("namespaces/default/pods/m:p0").await;
    assert_eq!(
        (&alone["podInfo"]["podIP"], &alone["podInfo"]["port"]),
        (&json!("127.0.0.1"), &json!(pod.port()))
    );
    let servers = router.debug("modelservers").await;
    let server = &servers["modelservers"][0];
    assert_eq!(
        (&server["name"], &server["associatedPods"]),
        (&json!("m"), &json!(["default/m:p0"]))
    );
    assert_eq!(server["spec"]["model"], "real");
    let route = router.debug("namespaces/default/modelroutes/m").await;
    assert_eq!(
        route["spec"]["rules"][0]["targetModels"][0]["modelServerName"],
        "m"
    );
    assert_eq!(router.debug("modelroutes").await["modelroutes"][0], route);
    for kind in ["gateways", "httproutes", "inferencepools"] {
        assert_eq!(
            router.debug(kind).await,
            json!({ kind: Value::Null }),
            "an empty list is null"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_404() {
    let router = setup().pods(&[]).start().await;
    for (page, body) in [
        (
            "namespaces/default/modelroutes/x",
            "{\"error\":\"ModelRoute not found\"}",
        ),
        (
            "namespaces/other/modelservers/m",
            "{\"error\":\"ModelServer not found\"}",
        ),
        ("namespaces/default/pods/x", "{\"error\":\"Pod not found\"}"),
        ("nonsense", "404 page not found"),
    ] {
        let answer = router
            .get(router.debug_port, &format!("/debug/config_dump/{page}"))
            .await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (404, body),
            "{page}"
        );
    }
    for port in [router.port, router.debug_port, router.metrics_port] {
        assert_eq!(router.get(port, "/nonsense").await.status, 404);
    }
}

#[tokio::test]
async fn explain_is_a_dry_run_of_the_real_decision() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    let body = r#"{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"U"}]}]}"#;
    let before = router
        .metrics()
        .await
        .count("kthena_router_requests_total", &[]);
    let plan = router.explain(CHAT, body).await;
    let text = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n";
    assert_eq!(
        (&plan["model"], &plan["modelServer"]),
        (&json!("m"), &json!("default/m"))
    );
    assert_eq!(
        (&plan["prompt"]["text"], &plan["prompt"]["bytes"]),
        (&json!(text), &json!(text.len()))
    );
    let hash = plan["prompt"]["hashes"][0].as_str().unwrap();
    assert_eq!(
        (
            hash.len(),
            plan["prompt"]["hashes"].as_array().unwrap().len()
        ),
        (16, 1)
    );
    let mut attempts: Vec<_> = plan["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap())
        .collect();
    attempts.sort_unstable();
    assert_eq!(attempts, ["default/m:p0", "default/m:p1"]);
    assert_eq!(plan["candidates"][0]["matchedBlocks"], 0);
    assert!(a.seen().is_empty() && b.seen().is_empty());
    assert_eq!(
        router
            .metrics()
            .await
            .count("kthena_router_requests_total", &[]),
        before
    );
    assert_eq!(router.out.lines().len(), 0);
    router.post(CHAT, body).await;
    let plan = router.explain(CHAT, body).await;
    let served = usize::from(a.seen().is_empty());
    assert_eq!(plan["candidates"][served]["matchedBlocks"], 1);
    assert_eq!(plan["attempts"][0], format!("default/m:p{served}"));
}

#[tokio::test]
async fn the_models_that_clients_can_ask_for() {
    let pod = Pod::start().await;
    let route = model_route("big", "org/big-7b", "m");
    let router = setup()
        .pods(&[&pod])
        .manifest("big.yaml", &route)
        .start()
        .await;
    let list = router.get(router.port, "/v1/models").await.json();
    let mut ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(
        (&list["object"], ids),
        (&json!("list"), vec!["m", "org/big-7b"])
    );
    for path in ["/v1/models/org/big-7b", "/v1/models/org%2Fbig-7b"] {
        let answer = router.get(router.port, path).await;
        assert_eq!(
            (answer.status, &answer.json()["id"]),
            (200, &json!("org/big-7b")),
            "{path}"
        );
    }
    let (status, kind, message) = router.get(router.port, "/v1/models/x").await.error();
    assert_eq!((status, kind.as_str()), (404, "route_not_found"));
    assert_eq!(message, "the model \"x\" does not exist");
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn health_and_readiness() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (path, body) in [
        ("/healthz", r#"{"message":"ok"}"#),
        ("/readyz", r#"{"message":"router is ready"}"#),
    ] {
        let answer = router.get(router.port, path).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, body));
    }
    router.chat("x").await;
    assert_eq!(
        pod.only().line,
        format!("POST {CHAT} HTTP/1.1"),
        "only the request itself"
    );
    let mut client = Client::connect(router.port).await;
    client.request("POST", CHAT, &[], completion("x")).await;
    assert_eq!(client.answer().await.status, 200);
}
