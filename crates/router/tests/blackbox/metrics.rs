//! The metrics page: names, labels and values.

use crate::{CHAT, completion, setup};
use e2e::{Gate, Gauges, Pod, Script, until};

#[tokio::test]
async fn the_families_and_their_types() {
    let pod = Pod::start().await;
    let config = e2e::scheduler(&[("prefix-cache", 1)], "{maxHashCacheSize: 1}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    // The second one evicts the first: a family without a series need not be on the page.
    router.chat("x").await;
    router.chat("y").await;
    let metrics = router.metrics().await;
    assert_eq!(
        metrics.families("kthena_router_"),
        [
            "kthena_router_requests counter",
            "kthena_router_request_duration_seconds histogram",
            "kthena_router_tokens counter",
            "kthena_router_scheduler_plugin_duration_seconds histogram",
            "kthena_router_active_requests gauge",
            "kthena_router_active_downstream_requests gauge",
            "kthena_router_active_upstream_requests gauge",
            "kthena_router_prefix_cache_match_ratio histogram",
            "kthena_router_prefix_cache_evictions counter",
            "kthena_router_prefix_cache_entries gauge",
            "kthena_router_access_log_lost_lines counter",
            "kthena_router_record_lost_requests counter",
            "kthena_router_scrape_failures counter",
            "kthena_router_malformed_requests counter",
            "kthena_router_config_source_up gauge",
            "kthena_router_build_info gauge",
            "kthena_router_pod_in_flight_requests gauge",
            "kthena_router_pod_waiting_requests gauge",
        ]
    );
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(
        metrics.value("kthena_router_build_info", &version),
        Some(1.0)
    );
    for name in [
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_cpu_seconds_total",
    ] {
        assert!(metrics.value(name, &[]).is_some(), "{name}");
    }
    assert_eq!(router.get(router.metrics_port, "/").await.status, 404);
}

#[tokio::test]
async fn g1_match_ratio_is_observed_once_for_each_scoring() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let prompt = crate::text(1, 1280);
    let other = prompt[..640].to_owned() + &crate::text(2, 640);
    for prompt in [&prompt, &prompt, &other] {
        router.post("/v1/completions", completion(prompt)).await;
    }
    // A dry run observes nothing.
    router.explain("/v1/completions", completion(&prompt)).await;
    let metrics = router.metrics().await;
    let name = "kthena_router_prefix_cache_match_ratio";
    let bucket = |le| metrics.bucket(name, "model=\"m\"", le);
    assert_eq!(bucket(0.0), Some(1.0), "the first one is a miss");
    assert_eq!(bucket(0.25), Some(1.0));
    assert_eq!(bucket(0.5), Some(2.0), "half of the last one");
    assert_eq!(bucket(0.99), Some(2.0));
    assert_eq!(bucket(1.0), Some(3.0));
    assert_eq!(bucket(f64::INFINITY), Some(3.0));
    assert_eq!(
        metrics.value(&format!("{name}_sum"), &[("model", "m")]),
        Some(1.5)
    );
    let labels: Vec<_> = metrics
        .series("kthena_router_prefix_cache_match_ratio_count")
        .collect();
    assert_eq!(labels, [("model=\"m\"", "3")]);
}

#[tokio::test]
async fn g2_evictions_are_a_counter_with_the_model() {
    let pod = Pod::start().await;
    let config = e2e::scheduler(&[("prefix-cache", 1)], "{maxHashCacheSize: 5}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    for seed in 1..4 {
        router
            .post("/v1/completions", completion(&crate::text(seed, 320)))
            .await;
    }
    let metrics = router.metrics().await;
    let series: Vec<_> = metrics
        .series("kthena_router_prefix_cache_evictions_total")
        .collect();
    assert_eq!(series, [("model=\"m\"", "10")]);
}

#[tokio::test]
async fn g3_entries_are_a_gauge_without_labels() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let entries = async || {
        let metrics = router.metrics().await;
        let series = metrics.series("kthena_router_prefix_cache_entries");
        series
            .map(|(l, v)| (l.to_owned(), v.to_owned()))
            .collect::<Vec<_>>()
    };
    let just = |count: &str| vec![(String::new(), count.to_owned())];
    assert_eq!(entries().await, just("0"));
    router
        .post("/v1/completions", completion(&crate::text(1, 320)))
        .await;
    assert_eq!(entries().await, just("5"));
}

#[tokio::test]
async fn requests_are_counted_by_how_they_ended() {
    let pod = Pod::start().await;
    let router = setup().server(&[&pod], "  model: real\n").start().await;
    router.chat("x").await;
    router.chat("x").await;
    pod.next(Script::json(404, "{}"));
    router.chat("x").await;
    router
        .post(CHAT, completion("x").replace("\"m\"", "\"no-such\""))
        .await;
    router.post(CHAT, "{").await;
    router
        .post("/v1/invented/by/a/client", completion("x"))
        .await;
    let metrics = router.metrics().await;
    let name = "kthena_router_requests_total";
    let bound = [
        ("model_route", "default/m"),
        ("backend_type", "model_server"),
        ("backend_name", "default/m"),
        ("upstream_model", "real"),
    ];
    let none = [
        ("model_route", "none"),
        ("backend_type", "unresolved"),
        ("backend_name", "none"),
        ("upstream_model", "none"),
    ];
    for (labels, backend, count) in [
        (
            [
                ("model", "m"),
                ("path", CHAT),
                ("status_code", "200"),
                ("error_type", "successful_request"),
            ],
            bound,
            2.0,
        ),
        (
            [
                ("model", "m"),
                ("path", CHAT),
                ("status_code", "404"),
                ("error_type", "request_failed"),
            ],
            bound,
            1.0,
        ),
        (
            [
                ("model", "m"),
                ("path", "other"),
                ("status_code", "200"),
                ("error_type", "successful_request"),
            ],
            bound,
            1.0,
        ),
        (
            [
                ("model", "unknown"),
                ("path", CHAT),
                ("status_code", "404"),
                ("error_type", "route_not_found"),
            ],
            none,
            1.0,
        ),
        (
            [
                ("model", "unknown"),
                ("path", CHAT),
                ("status_code", "400"),
                ("error_type", "request_parsing"),
            ],
            none,
            1.0,
        ),
    ] {
        let all: Vec<_> = labels.into_iter().chain(backend).collect();
        assert_eq!(
            metrics.value(name, &all),
            Some(count),
            "{all:?}\n{}",
            metrics.page
        );
    }
    assert_eq!(metrics.value(name, &[]), Some(6.0), "and no others");
    let durations = metrics.value(
        "kthena_router_request_duration_seconds_count",
        &[("model", "m")],
    );
    assert_eq!(durations, Some(4.0));
}

#[tokio::test]
async fn each_plugin_has_its_times() {
    let pod = Pod::start().await;
    let config = e2e::scheduler(&[("prefix-cache", 1), ("gpu-usage", 1)], "{}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    router.chat("x").await;
    let metrics = router.metrics().await;
    for (plugin, kind) in [
        ("least-request", "filter"),
        ("prefix-cache", "score"),
        ("gpu-usage", "score"),
    ] {
        let labels = [("model", "m"), ("plugin", plugin), ("type", kind)];
        let count = metrics.value(
            "kthena_router_scheduler_plugin_duration_seconds_count",
            &labels,
        );
        assert_eq!(count, Some(1.0), "{plugin}");
    }
}

#[tokio::test]
async fn gauges_of_a_pod_live_as_long_as_the_pod() {
    let [busy, silent] = Pod::several().await;
    silent.preset(None);
    let router = setup().pods(&[&busy, &silent]).start().await;
    busy.shows(Some(Gauges {
        waiting: 3,
        ..Gauges::default()
    }))
    .await;
    let gate = Gate::closed();
    for pod in [&busy, &silent] {
        pod.answers(Script::json(200, e2e::chat_answer()).behind(&gate));
    }
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], completion("x")).await;
    let series = async |name: &'static str| {
        let metrics = router.metrics().await;
        let series = metrics.series(name);
        series
            .map(|(labels, value)| format!("{labels} {value}"))
            .collect::<Vec<_>>()
    };
    let in_flight = async || series("kthena_router_pod_in_flight_requests").await;
    until("one pod has the request", async || {
        let mut values = in_flight().await;
        values
            .iter_mut()
            .for_each(|v| *v = v.split_off(v.len() - 1));
        values.sort();
        (values == ["0", "1"]).then_some(())
    })
    .await;
    // The other pod's queue is unknown, which is not an empty one.
    until("the queue was read", async || {
        let values = series("kthena_router_pod_waiting_requests").await;
        (values == ["backend_pod=\"default/m:p0\" 3"]).then_some(())
    })
    .await;
    gate.open();
    client.answer().await;
    router.set_pods(&[&silent]).await;
    until("the series of the removed pod are gone", async || {
        (in_flight().await == ["backend_pod=\"default/m:p0\" 0"]
            && series("kthena_router_pod_waiting_requests")
                .await
                .is_empty())
        .then_some(())
    })
    .await;
}
