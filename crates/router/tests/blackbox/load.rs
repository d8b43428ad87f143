//! What is not known about a pod's load, and what its page says of it.

use crate::{CHAT, completion, setup};
use e2e::{Gate, Gauges, Pod, Router, Script, scheduler, until};
use serde_json::Value;

fn all_plugins() -> String {
    scheduler(
        &[
            ("prefix-cache", 1),
            ("gpu-usage", 1),
            ("least-request", 1),
            ("least-latency", 1),
        ],
        "{}",
    )
}

async fn candidates(router: &Router) -> Vec<Value> {
    let plan = router.explain(CHAT, completion("x")).await;
    plan["candidates"].as_array().unwrap().clone()
}

#[tokio::test]
async fn j1_a_pod_that_was_never_read_is_unknown_and_not_idle() {
    let [silent, idle] = Pod::several().await;
    silent.preset(None);
    let router = setup()
        .pods(&[&silent, &idle])
        .config(&all_plugins())
        .start()
        .await;
    let found = candidates(&router).await;
    assert_eq!(found[0]["filteredBy"], Value::Null);
    assert_eq!(found[0]["scores"]["gpu-usage"], 50);
    assert_eq!(found[1]["scores"]["gpu-usage"], 100);
    let page = router.debug("pods").await;
    let of = |name: &str| {
        page["pods"]
            .as_array()
            .unwrap()
            .iter()
            .find(|p| p["name"] == name)
            .unwrap()
    };
    assert_eq!(
        (&of("m:p0")["metricsKnown"], &of("m:p0")["metricsAgeMs"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(of("m:p1")["metricsKnown"], true);
    router.log.has("cannot read metrics").await;
    assert!(
        router
            .metrics()
            .await
            .count("kthena_router_scrape_failures_total", &[])
            >= 1.0
    );
}

#[tokio::test]
async fn j1_a_reading_of_ten_intervals_ago_is_no_longer_believed() {
    let [quiet, other] = Pod::several().await;
    let router = setup()
        .pods(&[&quiet, &other])
        .config(&all_plugins())
        .start()
        .await;
    let full = Gauges {
        waiting: 50,
        usage: 0.25,
        ..Gauges::default()
    };
    quiet.shows(Some(full)).await;
    assert_eq!(candidates(&router).await[0]["filteredBy"], "least-request");
    quiet.shows(None).await;
    let stale = until("the reading is too old", async || {
        let pod = router.debug("namespaces/default/pods/m:p0").await;
        (pod["metricsKnown"] == false).then_some(pod)
    })
    .await;
    // Ten intervals of 50 ms.
    assert!(stale["metricsAgeMs"].as_u64().unwrap() >= 500, "{stale}");
    assert_eq!(
        stale["metrics"]["requestWaitingNum"], 50,
        "the last reading stays to be seen"
    );
    let found = candidates(&router).await;
    assert_eq!(
        found[0]["filteredBy"],
        Value::Null,
        "the Filter lets an unknown pod pass"
    );
    assert_eq!(found[0]["scores"]["gpu-usage"], 50);
    quiet.shows(Some(Gauges { waiting: 0, ..full })).await;
    router.log.has("metrics can be read again").await;
    assert_eq!(candidates(&router).await[0]["scores"]["gpu-usage"], 75);
}

#[tokio::test]
async fn j1_requests_in_flight_count_at_once_without_any_page() {
    let pods: [Pod; 2] = Pod::several().await;
    let gate = Gate::closed();
    pods.iter()
        .for_each(|p| p.answers(Script::json(200, e2e::chat_answer()).behind(&gate)));
    let config = scheduler(&[("least-request", 1)], "{}");
    let router = setup()
        .pods(&[&pods[0], &pods[1]])
        .config(&config)
        .start()
        .await;
    let mut clients = Vec::new();
    for number in 1..=6 {
        let mut client = router.connect().await;
        client.request("POST", CHAT, &[], completion("x")).await;
        clients.push(client);
        until("it is at a pod", async || {
            (pods[0].seen().len() + pods[1].seen().len() == number).then_some(())
        })
        .await;
        let counts = pods.each_ref().map(|p| p.seen().len());
        assert!(counts[0].abs_diff(counts[1]) <= 1, "{counts:?}");
    }
    gate.open();
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test]
async fn j1_a_model_list_that_never_comes_spoils_no_figures() {
    let [slow, other] = Pod::several().await;
    slow.hides_models();
    slow.preset(Some(Gauges {
        waiting: 50,
        ..Gauges::default()
    }));
    let setup = setup().pods(&[&slow, &other]).config(&all_plugins());
    let router = setup.start().await;
    let first = |found: Vec<Value>| found[0]["filteredBy"].clone();
    assert_eq!(first(candidates(&router).await), "least-request");
    // Longer than a reading may live: the figures stay fresh.
    slow.scraped(25).await;
    assert_eq!(first(candidates(&router).await), "least-request");
    slow.shows(Some(Gauges::default())).await;
    assert_eq!(first(candidates(&router).await), Value::Null);
    let failures = router.metrics().await;
    assert_eq!(
        failures.count("kthena_router_scrape_failures_total", &[]),
        0.0
    );
}
