//! The router on a cluster.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{ApiServer, Fault, Gate, Pod, Router, cluster_pod, custom, on_list, until};
use serde_json::json;

/// An API server that knows model `m` on ModelServer `default/m`, and two engines `a` and `b` on one port, of which the
/// pods are still to be stored.
async fn cluster() -> (ApiServer, Pod, Pod) {
    let a = Pod::start().await;
    let b = Pod::start_at("127.0.0.2", a.port()).await;
    let api = ApiServer::start().await;
    let spec = json!({
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": "m"}},
        "workloadPort": {"port": a.port()},
    });
    api.put("modelservers", custom("ModelServer", "m", spec));
    let rules = json!([{"targetModels": [{"modelServerName": "m"}]}]);
    api.put(
        "modelroutes",
        custom("ModelRoute", "m", json!({"modelName": "m", "rules": rules})),
    );
    (api, a, b)
}

fn put(api: &ApiServer, name: &str) {
    let ip = if name == "a" {
        "127.0.0.1"
    } else {
        "127.0.0.2"
    };
    api.put("pods", cluster_pod(name, ip, &[("app", "m")]));
}

async fn ask(router: &Router, prompt: &str) -> u16 {
    router.post(COMPLETIONS, completion(prompt)).await.status
}

async fn entries(router: &Router) -> f64 {
    let page = router.metrics().await;
    page.value("kthena_router_prefix_cache_entries", &[])
        .unwrap()
}

async fn source_up(router: &Router) -> Option<f64> {
    router
        .metrics()
        .await
        .value("kthena_router_config_source_up", &[])
}

/// Waits until the router has so many pods.
async fn has_pods(router: &Router, count: usize) {
    until(&format!("{count} pods"), async || {
        let page = router.debug("pods").await;
        (page["pods"].as_array().map_or(0, Vec::len) == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn pods_come_and_go_with_their_prefix_entries() {
    let (api, a, b) = cluster().await;
    let router = setup().cluster(&api).start().await;
    assert_eq!(ask(&router, "x").await, 503, "there is no pod yet");
    put(&api, "a");
    has_pods(&router, 1).await;
    // 40 blocks.
    assert_eq!(ask(&router, &text(1, 2560)).await, 200);
    assert_eq!((a.seen().len(), entries(&router).await), (1, 40.0));
    put(&api, "b");
    has_pods(&router, 2).await;
    let mut turn = 1;
    while b.seen().is_empty() {
        turn += 1;
        assert_eq!(ask(&router, &text(turn, 2560)).await, 200);
    }
    let of = |pod: &Pod| 40.0 * pod.seen().len() as f64;
    assert_eq!(entries(&router).await, of(&a) + of(&b));
    api.delete("pods", "a");
    has_pods(&router, 1).await;
    until("the entries of the deleted pod are gone", async || {
        (entries(&router).await == of(&b)).then_some(())
    })
    .await;
    let before = a.seen().len();
    for turn in 0..4 {
        assert_eq!(ask(&router, &text(turn, 2560)).await, 200);
    }
    assert_eq!(a.seen().len(), before, "a deleted pod gets nothing");
}

#[tokio::test]
async fn a_pod_that_is_asked_for_by_two_ports_is_shown_twice() {
    let (api, a, _b) = cluster().await;
    put(&api, "a");
    let spec = json!({
        "inferenceEngine": "SGLang",
        "workloadSelector": {"matchLabels": {"app": "m"}},
        "workloadPort": {"port": 1},
    });
    let router = setup().cluster(&api).start().await;
    let page = "namespaces/default/pods/a";
    has_pods(&router, 1).await;
    assert!(router.debug(page).await["others"].is_null());
    api.put("modelservers", custom("ModelServer", "n", spec));
    has_pods(&router, 2).await;
    let shown = router.debug(page).await;
    let brief = |pod: &serde_json::Value| {
        json!([
            pod["name"],
            pod["engine"],
            pod["modelServers"],
            pod["podInfo"]["port"]
        ])
    };
    assert_eq!(brief(&shown), json!(["a", "vLLM", ["default/m"], a.port()]));
    let others = shown["others"].as_array().unwrap();
    assert_eq!(others.len(), 1);
    assert_eq!(brief(&others[0]), json!(["a", "SGLang", ["default/n"], 1]));
}

#[tokio::test]
async fn flags_of_the_original_do_not_stop_it() {
    let (api, _a, _b) = cluster().await;
    let flags = [
        "--logtostderr=true",
        "--vmodule=x=2",
        "--enable-gateway-api=False",
    ];
    let router = setup().cluster(&api).flags(&flags).start().await;
    let line = router.log.has("without effect").await;
    assert!(line.starts_with('W'), "{line}");
    assert!(
        line.contains("--logtostderr, --vmodule without effect"),
        "{line}"
    );
}

#[tokio::test]
async fn a_pod_that_comes_back_under_its_name_has_an_empty_cache() {
    let (api, _a, _b) = cluster().await;
    put(&api, "a");
    let router = setup().cluster(&api).start().await;
    assert_eq!(ask(&router, "x").await, 200);
    assert_eq!(router.scores("prefix-cache", "x").await.len(), 1);
    assert_eq!(entries(&router).await, 1.0);
    api.delete("pods", "a");
    put(&api, "a");
    until("the new pod has no entries", async || {
        (entries(&router).await == 0.0).then_some(())
    })
    .await;
    assert_eq!(ask(&router, "x").await, 200);
}

#[tokio::test]
async fn it_is_not_ready_before_everything_was_listed() {
    let (api, a, _b) = cluster().await;
    put(&api, "a");
    let gate = Gate::closed();
    api.scenario("slow list", [on_list("pods", Fault::Slow(gate.clone()))]);
    let router = setup().cluster(&api).launch().await;
    api.played().await;
    let answer = router.get(router.port, "/readyz").await;
    assert_eq!(
        (answer.status, answer.text()),
        (503, r#"{"message":"router is not ready"}"#.to_owned())
    );
    assert_eq!(router.get(router.port, "/healthz").await.status, 200);
    assert_eq!(source_up(&router).await, Some(0.0));
    gate.open();
    router.ready().await;
    assert_eq!(source_up(&router).await, Some(1.0));
    assert_eq!(ask(&router, "x").await, 200);
    assert_eq!(a.seen().len(), 1);
}

#[tokio::test]
async fn without_the_api_server_it_serves_on_and_says_so() {
    let (mut api, _a, _b) = cluster().await;
    put(&api, "a");
    put(&api, "b");
    let router = setup().cluster(&api).start().await;
    has_pods(&router, 2).await;
    api.stop().await;
    until("the metric says so", async || {
        (source_up(&router).await == Some(0.0)).then_some(())
    })
    .await;
    let line = router.log.has("the API server cannot be asked for").await;
    assert!(
        line.starts_with('E') && line.contains("the last snapshot keeps serving"),
        "{line}"
    );
    assert_eq!(router.get(router.port, "/readyz").await.status, 200);
    assert_eq!(ask(&router, "x").await, 200);
    api.lose("pods", "a");
    api.restart().await;
    has_pods(&router, 1).await;
    until("the metric says so", async || {
        (source_up(&router).await == Some(1.0)).then_some(())
    })
    .await;
    router.log.has("the API server answers again").await;
    let lines = router.log.lines();
    let away = lines.iter().filter(|l| l.contains("API server")).count();
    assert_eq!(away, 2, "{lines:?}");
}

#[tokio::test]
async fn the_token_goes_to_the_api_server_and_into_no_log() {
    let (api, _a, _b) = cluster().await;
    put(&api, "a");
    let router = setup().cluster(&api).start().await;
    assert_eq!(ask(&router, "x").await, 200);
    let lists = api.lists("pods");
    assert_eq!(
        lists[0].authorization.as_deref(),
        Some("Bearer secret-token")
    );
    let said = [router.log.lines(), router.out.lines()].concat().join("\n");
    assert!(!said.contains("secret-token"));
}

#[tokio::test]
async fn statuses_are_written_unless_they_are_turned_off() {
    let (api, _a, _b) = cluster().await;
    put(&api, "a");
    let quiet = setup()
        .cluster(&api)
        .flags(&["--status=false"])
        .start()
        .await;
    has_pods(&quiet, 1).await;
    assert!(api.writes("modelservers").is_empty());
    let _router = setup().cluster(&api).start().await;
    until("the status is written", async || {
        let server = api.get("modelservers", "m");
        (server["status"]["readyReplicas"] == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn j5_two_routers_have_a_view_each() {
    let (api, a, b) = cluster().await;
    put(&api, "a");
    put(&api, "b");
    let one = setup().cluster(&api).start().await;
    let two = setup().cluster(&api).start().await;
    has_pods(&one, 2).await;
    has_pods(&two, 2).await;
    assert_eq!(ask(&one, &text(1, 2560)).await, 200);
    assert_eq!((entries(&one).await, entries(&two).await), (40.0, 0.0));
    api.delete("pods", "a");
    has_pods(&one, 1).await;
    has_pods(&two, 1).await;
    for router in [&one, &two] {
        assert_eq!(ask(router, "x").await, 200);
    }
    assert_eq!(a.seen().len() + b.seen().len(), 3);
}

/// Starts a router that must not come up, and returns the last line of its log without the prefix.
async fn refused(setup: e2e::Setup) -> String {
    let mut router = setup.launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    let lines = router.log.lines();
    let last = lines.last().expect("a reason");
    last.split_once("] ").unwrap().1.to_owned()
}

#[tokio::test]
async fn f1_a_cluster_without_the_config_map_does_not_start() {
    let (api, _a, _b) = cluster().await;
    // Where the chart mounts it; nothing is there on a machine that runs tests.
    let path = "/etc/config/routerConfiguration.yaml";
    let said = refused(setup().cluster(&api).flags(&["--router-config", path])).await;
    let wanted = format!("failed to parse router config: failed to read config file {path}: ");
    assert!(said.starts_with(&wanted), "{said}");
}

#[tokio::test]
async fn without_credentials_it_does_not_start_and_says_what_to_do() {
    let setup = setup()
        .flags(&["--config-source", "kubernetes"])
        .env("KUBECONFIG", "nowhere")
        .env("KUBERNETES_SERVICE_HOST", "");
    let said = refused(setup).await;
    assert!(said.contains("no credentials for a cluster"), "{said}");
    assert!(said.contains("--config-source=file"), "{said}");
}
