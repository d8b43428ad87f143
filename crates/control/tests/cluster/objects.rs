//! Custom resources: each judged by itself.

use crate::support::{Log, follow, route, server};
use e2e::{ApiServer, cluster_pod, custom, until};
use serde_json::json;

async fn one_pod() -> ApiServer {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    api.put("modelroutes", route("r", "x", "m"));
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    api
}

#[tokio::test]
async fn objects_as_an_api_server_sends_them_draw_no_remark() {
    let log = Log::start();
    let api = one_pod().await;
    api.edit("modelservers", "m", |server| {
        server["metadata"]["ownerReferences"] =
            json!([{"kind": "ModelBooster", "name": "b", "uid": "1"}]);
        server["metadata"]["deletionGracePeriodSeconds"] = json!(null);
        server["status"] = json!({"conditions": null});
        server["spec"]["trafficPolicy"] =
            json!({"timeout": "1m0s", "retry": {"attempts": 3, "retryInterval": "100ms"}});
        server["spec"]["kvConnector"] = json!(null);
    });
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    source.routes("x", Some("m")).await;
    let said = [log.with("WARN"), log.with("ERROR")].concat();
    assert_eq!(said, Vec::<String>::new());
}

#[tokio::test]
async fn a_stored_object_that_breaks_a_rule_is_left_out_alone() {
    let log = Log::start();
    let api = one_pod().await;
    let mut bad = server("bad");
    bad["spec"]["inferenceEngine"] = "Llama".into();
    bad["spec"]["workloadPort"]["port"] = 0.into();
    api.put("modelservers", bad);
    api.put(
        "modelroutes",
        custom(
            "ModelRoute",
            "bad",
            json!({"modelName": "y", "rules": [{"targetModels": []}]}),
        ),
    );
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    source.routes("x", Some("m")).await;
    source.routes("y", None).await;
    assert!(!source.has_server("bad"));
    let lines = log.with("ModelServer default/bad");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("spec.inferenceEngine: Unsupported value: \"Llama\"")
            && lines[0].contains("spec.workloadPort.port: Invalid value: 0")
            && lines[0].contains("it is left out"),
        "{lines:?}"
    );
    let line = log.has("ModelRoute default/bad is not valid").await;
    assert!(
        line.contains("each rule must have at least one target model"),
        "{line}"
    );
    api.edit("modelservers", "bad", |server| {
        server["spec"]["inferenceEngine"] = "SGLang".into();
        server["spec"]["workloadPort"]["port"] = 30000.into();
    });
    until("it is valid", async || {
        source.has_server("bad").then_some(())
    })
    .await;
    log.has("ModelServer default/bad is valid again").await;
}

#[tokio::test]
async fn a_change_that_breaks_a_rule_leaves_the_last_valid_version_in_force() {
    let log = Log::start();
    let api = one_pod().await;
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let id = source.pod("a").id;
    api.edit("modelservers", "m", |server| {
        server["spec"]["workloadPort"]["port"] = 99999.into()
    });
    let line = log.has("ModelServer default/m is not valid").await;
    assert!(
        line.contains("the last valid version stays in force"),
        "{line}"
    );
    // Others go on.
    api.put("modelroutes", route("r2", "y", "m"));
    source.routes("y", Some("m")).await;
    assert_eq!(source.pod("a").id, id);
    // What comes back under its name is another object, without an earlier version.
    api.delete("modelservers", "m");
    source.has_pods(&[]).await;
    let mut bad = server("m");
    bad["spec"]["inferenceEngine"] = json!(null);
    api.put("modelservers", bad);
    log.has("it is left out").await;
    api.put("modelroutes", route("r3", "z", "m"));
    source.routes("z", Some("m")).await;
    assert!(!source.has_server("m"));
}

#[tokio::test]
async fn of_two_routes_for_a_model_the_older_one_wins_and_the_newer_one_takes_over() {
    let api = one_pod().await;
    api.put("modelservers", server("n"));
    let mut older = route("z-older", "x", "n");
    older["metadata"]["creationTimestamp"] = "2026-11-29T00:00:00Z".into();
    api.put("modelroutes", older);
    let source = follow(&api);
    source.routes("x", Some("n")).await;
    let fleet = source.fleet();
    let order: Vec<_> = fleet
        .routes_for("x")
        .unwrap()
        .0
        .iter()
        .map(|r| r.name.name())
        .collect();
    assert_eq!(order, ["z-older", "r"]);
    api.delete("modelroutes", "z-older");
    source.routes("x", Some("m")).await;
}

#[tokio::test]
async fn endpoints_are_for_manifests() {
    let log = Log::start();
    let api = one_pod().await;
    api.edit("modelservers", "m", |server| {
        server["spec"]["endpoints"] = json!([{"name": "e", "address": "10.9.9.9"}]);
    });
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let lines =
        log.with("ModelServer default/m: spec.endpoints: endpoints has no effect in a cluster");
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_target_that_does_not_exist_is_named_once() {
    let log = Log::start();
    let api = one_pod().await;
    api.put("modelroutes", route("early", "y", "later"));
    let source = follow(&api);
    source.routes("y", Some("later")).await;
    api.put("modelroutes", route("other", "z", "m"));
    source.routes("z", Some("m")).await;
    let said = "ModelRoute default/early: spec.rules[0].targetModels[0].modelServerName: ModelServer default/later does not exist";
    assert_eq!(log.with(said).len(), 1, "{:?}", log.with("default/early"));
}

#[tokio::test]
async fn a_provider_is_a_target_that_exists() {
    let log = Log::start();
    let api = one_pod().await;
    let provider = custom(
        "ExternalModelProvider",
        "p",
        json!({"baseURL": "https://models.example/v1"}),
    );
    api.put("externalmodelproviders", provider);
    let rules = json!([{"targetModels": [{"externalModelProviderName": "p"}]}]);
    api.put(
        "modelroutes",
        custom(
            "ModelRoute",
            "out",
            json!({"modelName": "y", "rules": rules}),
        ),
    );
    let source = follow(&api);
    source.routes("y", Some("external default/p")).await;
    assert_eq!(log.with("does not exist"), Vec::<String>::new());
}
