//! Statuses that the router writes.

use crate::support::{Log, follow, follow_with, options, route, server, timing};
use control::{ClusterOptions, Timing};
use e2e::{ApiServer, Fault, cluster_pod, custom, on_write, until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn with_statuses() -> ClusterOptions {
    ClusterOptions {
        statuses: true,
        ..options()
    }
}

async fn two_pods() -> ApiServer {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    let mut waiting = cluster_pod("b", "10.0.0.2", &[("app", "m")]);
    waiting["status"]["phase"] = "Pending".into();
    api.put("pods", waiting);
    api
}

/// Waits for a status with this message, and returns it.
async fn says(api: &ApiServer, resource: &str, name: &str, message: &str) -> Value {
    until(
        &format!("the status of {name} says {message:?}"),
        async || {
            let status = api.get(resource, name)["status"].take();
            let text = status["conditions"][0]["message"].as_str();
            text.is_some_and(|t| t.contains(message)).then_some(status)
        },
    )
    .await
}

#[tokio::test]
async fn a_server_says_how_many_pods_it_has() {
    let api = two_pods().await;
    let _source = follow_with(&api, with_statuses(), timing());
    let mut status = says(&api, "modelservers", "m", "1 of 2 pods are ready").await;
    let since = status["conditions"][0]["lastTransitionTime"].take();
    assert!(since.as_str().unwrap().ends_with('Z'), "{since}");
    assert_eq!(
        status,
        json!({
            "observedGeneration": 1,
            "matchedReplicas": 2,
            "readyReplicas": 1,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "PodsReady", "message": "1 of 2 pods are ready",
                "observedGeneration": 1, "lastTransitionTime": null,
            }],
        })
    );
    let write = &api.writes("modelservers")[0];
    assert_eq!(write.query["fieldManager"], "kthena-router");
    assert_eq!(write.query["force"], "true");
    assert!(
        write.body["spec"].is_null(),
        "the status and nothing else is owned"
    );

    api.edit("pods", "b", |pod| pod["status"]["phase"] = "Running".into());
    says(&api, "modelservers", "m", "2 of 2 pods are ready").await;
    api.delete("pods", "a");
    api.edit("pods", "b", |pod| pod["status"]["phase"] = "Pending".into());
    let status = says(&api, "modelservers", "m", "none of 1 pods is ready").await;
    assert_eq!(
        (&status["conditions"][0]["status"], &status["readyReplicas"]),
        (&json!("False"), &json!(0))
    );
    api.delete("pods", "b");
    let status = says(&api, "modelservers", "m", "no pod has the labels").await;
    assert_eq!(status["conditions"][0]["reason"], "NoReadyPods");
    assert_eq!(status["matchedReplicas"], 0);
}

#[tokio::test]
async fn the_time_of_a_transition_stays_until_there_is_one() {
    let long_ago = "2026-01-01T00:00:00Z";
    let api = two_pods().await;
    api.edit("modelservers", "m", |server| {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": long_ago});
        server["status"] = json!({"conditions": [{"type": "Other", "status": "False"}, ready]});
    });
    let _source = follow_with(&api, with_statuses(), timing());
    let status = says(&api, "modelservers", "m", "1 of 2").await;
    assert_eq!(status["conditions"][0]["lastTransitionTime"], long_ago);
    api.delete("pods", "a");
    let status = says(&api, "modelservers", "m", "none of 1").await;
    assert_ne!(status["conditions"][0]["lastTransitionTime"], long_ago);
}

#[tokio::test]
async fn a_status_that_says_it_already_is_not_written() {
    let api = two_pods().await;
    let first = follow_with(&api, with_statuses(), timing());
    says(&api, "modelservers", "m", "1 of 2").await;
    drop(first);
    let second = follow_with(&api, with_statuses(), timing());
    second.has_pods(&["a"]).await;
    // A change that the status does not show, and one that it does.
    api.edit("pods", "a", |pod| {
        pod["metadata"]["labels"]["more"] = "labels".into()
    });
    until("the pod changes", async || {
        second.pod("a").labels.contains_key("more").then_some(())
    })
    .await;
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    says(&api, "modelservers", "m", "2 of 3").await;
    assert_eq!(
        api.writes("modelservers").len(),
        2,
        "one for each thing that it said"
    );
}

#[tokio::test]
async fn what_is_not_valid_says_so_until_it_is() {
    let api = two_pods().await;
    api.edit("modelservers", "m", |server| {
        server["spec"]["inferenceEngine"] = "Llama".into()
    });
    api.put(
        "modelroutes",
        custom(
            "ModelRoute",
            "r",
            json!({"modelName": "x", "rules": [{"targetModels": []}]}),
        ),
    );
    api.put("modelroutes", route("good", "y", "m"));
    let source = follow_with(&api, with_statuses(), timing());
    let status = says(
        &api,
        "modelservers",
        "m",
        "spec.inferenceEngine: Unsupported value",
    )
    .await;
    assert_eq!(
        (
            &status["conditions"][0]["reason"],
            &status["observedGeneration"]
        ),
        (&json!("ConfigurationInvalid"), &json!(2))
    );
    let status = says(
        &api,
        "modelroutes",
        "r",
        "each rule must have at least one target model",
    )
    .await;
    assert_eq!(status["conditions"][0]["status"], "False");
    assert!(status["matchedReplicas"].is_null());
    api.edit("modelroutes", "r", |route| {
        route["spec"]["rules"] = json!([{"targetModels": [{"modelServerName": "m"}]}]);
    });
    let status = says(&api, "modelroutes", "r", "all rules are kept").await;
    assert_eq!(status["conditions"][0]["status"], "True");
    source.routes("x", Some("m")).await;
    assert!(
        api.get("modelroutes", "good")["status"].is_null(),
        "a route that was never wrong says nothing"
    );
}

#[tokio::test]
async fn statuses_can_be_turned_off() {
    let api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    api.put("modelservers", server("n"));
    until("the change is in force", async || {
        source.has_server("n").then_some(())
    })
    .await;
    assert!(api.writes("modelservers").is_empty());
}

#[tokio::test]
async fn a_missing_right_is_one_line_and_the_router_serves_without() {
    let log = Log::start();
    let api = two_pods().await;
    let no = "modelservers.networking.serving.volcano.sh \"m\" is forbidden: cannot patch resource \"modelservers/status\"";
    api.scenario(
        "forbidden",
        [on_write(
            "modelservers",
            Fault::Refuse(403, "Forbidden", no),
        )],
    );
    let source = follow_with(&api, with_statuses(), timing());
    api.played().await;
    log.has("(--status=false turns statuses off)").await;
    for n in 0..20 {
        api.put(
            "pods",
            cluster_pod(&format!("p{n}"), "10.0.0.9", &[("app", "m")]),
        );
        until("the pod is there", async || {
            (source.pods().len() == n + 2).then_some(())
        })
        .await;
    }
    assert_eq!(
        api.writes("modelservers").len(),
        1,
        "what is refused is left alone"
    );
    assert_eq!(log.with(no).len(), 1);
    assert_eq!(source.up(), [true], "serving does not need it");
}

#[tokio::test]
async fn a_missing_right_concerns_its_kind_only() {
    let api = two_pods().await;
    let bad = json!({"modelName": "x", "rules": [{"targetModels": []}]});
    api.put("modelroutes", custom("ModelRoute", "r", bad));
    let no = Fault::Refuse(403, "Forbidden", "is forbidden");
    api.scenario("forbidden", [on_write("modelroutes", no)]);
    let _source = follow_with(&api, with_statuses(), timing());
    api.played().await;
    says(&api, "modelservers", "m", "1 of 2").await;
    api.delete("pods", "b");
    says(&api, "modelservers", "m", "1 of 1").await;
    assert_eq!(api.writes("modelroutes").len(), 1);
}

#[tokio::test]
async fn a_right_that_is_given_later_is_used() {
    let log = Log::start();
    let api = two_pods().await;
    let no = || {
        on_write(
            "modelservers",
            Fault::Refuse(403, "Forbidden", "is forbidden"),
        )
    };
    api.scenario("forbidden twice", [no(), no()]);
    let timing = Timing {
        status_refused: Duration::from_millis(20),
        ..timing()
    };
    let _source = follow_with(&api, with_statuses(), timing);
    says(&api, "modelservers", "m", "1 of 2").await;
    assert_eq!(log.with("was refused").len(), 1);
    log.has("statuses of modelservers can be written again")
        .await;
}

#[tokio::test]
async fn many_changes_are_few_writes() {
    let api = two_pods().await;
    let timing = Timing {
        status_each: Duration::from_millis(500),
        ..timing()
    };
    let source = follow_with(&api, with_statuses(), timing);
    says(&api, "modelservers", "m", "1 of 2").await;
    for n in 0..30 {
        api.put(
            "pods",
            cluster_pod(&format!("p{n}"), "10.0.0.9", &[("app", "m")]),
        );
        until("the pod is there", async || {
            (source.pods().len() == n + 2).then_some(())
        })
        .await;
    }
    says(&api, "modelservers", "m", "31 of 32").await;
    let writes = api.writes("modelservers").len();
    assert!(writes < 10, "{writes} writes");
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let api = two_pods().await;
    let conflict = Fault::Refuse(409, "Conflict", "the object has been modified");
    api.scenario("a conflict", [on_write("modelservers", conflict)]);
    let _source = follow_with(&api, with_statuses(), timing());
    says(&api, "modelservers", "m", "1 of 2").await;
    assert_eq!(api.writes("modelservers").len(), 2);
}

#[tokio::test]
async fn what_fails_for_good_is_said_once() {
    let log = Log::start();
    let api = two_pods().await;
    api.put("modelservers", server("n"));
    let no = "failed to create typed patch object: field not declared in schema";
    let fails = (0..12).map(|_| on_write("modelservers", Fault::Refuse(500, "InternalError", no)));
    api.scenario("an older CRD", fails);
    let _source = follow_with(&api, with_statuses(), timing());
    let line = log.has("(--status=false turns statuses off)").await;
    assert!(line.contains("WARN") && line.contains(no), "{line}");
    assert!(
        (5..=6).contains(&api.writes("modelservers").len()),
        "at the third failure of one"
    );
    api.played().await;
    says(&api, "modelservers", "m", "1 of 2").await;
    says(&api, "modelservers", "n", "no pod").await;
    log.has("statuses of modelservers can be written again")
        .await;
    assert_eq!(log.with(no).len(), 1);
}

#[tokio::test]
async fn what_somebody_else_wrote_is_set_right_after_a_while() {
    let api = two_pods().await;
    let again = Duration::from_millis(100);
    let timing = Timing {
        status_again: again,
        ..timing()
    };
    api.put("modelservers", server("n"));
    let source = follow_with(&api, with_statuses(), timing);
    says(&api, "modelservers", "m", "1 of 2").await;
    says(&api, "modelservers", "n", "no pod").await;
    let (begun, snapshots) = (Instant::now(), source.count());
    for _ in 0..3 {
        api.edit("modelservers", "m", |server| {
            server["status"] = json!({});
        });
        says(&api, "modelservers", "m", "1 of 2").await;
    }
    // However often somebody writes against it.
    assert!(begun.elapsed() >= 3 * again / 2, "{:?}", begun.elapsed());
    let writes = api.writes("modelservers");
    let of = |name: &str| {
        writes
            .iter()
            .filter(|w| w.name.as_deref() == Some(name))
            .count()
    };
    assert_eq!((of("m"), of("n")), (4, 1));
    assert_eq!(
        source.count(),
        snapshots,
        "a status changes nothing that serves"
    );
}

#[tokio::test]
async fn two_routers_do_not_write_against_each_other() {
    let api = two_pods().await;
    let one = follow_with(&api, with_statuses(), timing());
    says(&api, "modelservers", "m", "1 of 2").await;
    // As a router would that sees other pods.
    api.edit("modelservers", "m", |server| {
        server["status"]["conditions"][0]["message"] = "0 of 2 pods are ready".into();
    });
    api.put("modelservers", server("n"));
    until("the change is in force", async || {
        one.has_server("n").then_some(())
    })
    .await;
    says(&api, "modelservers", "n", "no pod has the labels").await;
    assert_eq!(
        api.get("modelservers", "m")["status"]["conditions"][0]["message"],
        "0 of 2 pods are ready"
    );
}
