//! Which pods serve, and which pods are the same.

use crate::support::{follow, server, server_with};
use e2e::{ApiServer, cluster_pod, until};
use serde_json::{Value, json};

async fn one_pod() -> ApiServer {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    api
}

#[tokio::test]
async fn a_pod_has_its_facts_from_the_wire() {
    let api = one_pod().await;
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let pod = source.pod("a");
    assert_eq!(pod.name.as_str(), "default/a");
    assert_eq!(pod.endpoint.to_string(), "10.0.0.1:8000");
    let uid = &api.get("pods", "a")["metadata"]["uid"];
    assert_eq!(pod.uid.as_deref(), uid.as_str());
    let labels: Vec<_> = pod.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(labels, ["app=m", "pod-template-hash=7d9c8b6f5"]);
}

#[tokio::test]
async fn an_ipv6_address_is_an_address() {
    let api = one_pod().await;
    api.edit("pods", "a", |pod| pod["status"]["podIP"] = "fd00::7".into());
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    assert_eq!(source.pod("a").endpoint.to_string(), "[fd00::7]:8000");
}

#[tokio::test]
async fn a_pod_serves_when_it_is_running_and_ready_and_not_terminating() {
    let api = one_pod().await;
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let breaks: [fn(&mut Value); 9] = [
        |pod| pod["metadata"]["deletionTimestamp"] = "2026-11-30T01:00:00Z".into(),
        |pod| pod["status"]["phase"] = "Pending".into(),
        |pod| pod["status"]["phase"] = "Unknown".into(),
        |pod| pod["status"]["conditions"][2]["status"] = "False".into(),
        |pod| pod["status"]["conditions"][2]["status"] = "Unknown".into(),
        |pod| pod["status"]["conditions"] = Value::Null,
        |pod| pod["status"]["podIP"] = Value::Null,
        |pod| pod["status"] = json!({}),
        |pod| pod["status"]["phase"] = "Failed".into(),
    ];
    for (number, broken) in breaks.into_iter().enumerate() {
        let before = source.pod("a").id;
        let whole = api.get("pods", "a");
        api.edit("pods", "a", broken);
        until(&format!("the pod goes, {number}"), async || {
            source.pods().is_empty().then_some(())
        })
        .await;
        api.put("pods", whole);
        source.has_pods(&["a"]).await;
        assert_ne!(
            source.pod("a").id,
            before,
            "what was gone comes back without its prefix entries, {number}"
        );
    }
}

#[tokio::test]
async fn a_pod_of_the_same_name_with_another_uid_is_another_pod() {
    let api = one_pod().await;
    api.put("pods", cluster_pod("b", "10.0.0.2", &[("app", "m")]));
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    let (a, b) = (source.pod("a"), source.pod("b"));
    // Both within one snapshot, as of a StatefulSet: the name and the address are those from before.
    api.delete("pods", "a");
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    until("the new pod is there", async || {
        (source.pods().len() == 2 && source.pod("a").uid != a.uid).then_some(())
    })
    .await;
    assert_ne!(source.pod("a").id, a.id);
    assert_eq!(source.pod("b").id, b.id);
}

#[tokio::test]
async fn labels_move_a_pod() {
    let api = one_pod().await;
    api.put("modelservers", server("n"));
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let of = |name: &str| {
        let fleet = source.fleet();
        let name = routing::fleet::ObjectName::new("default", name);
        fleet.server(&name).unwrap().pods().len()
    };
    assert_eq!((of("m"), of("n")), (1, 0));
    let id = source.pod("a").id;
    api.edit("pods", "a", |pod| {
        pod["metadata"]["labels"]["app"] = "n".into()
    });
    until("the pod moves", async || {
        ((of("m"), of("n")) == (0, 1)).then_some(())
    })
    .await;
    assert_eq!(source.pod("a").id, id, "it is the same process");
    api.edit("pods", "a", |pod| {
        pod["metadata"]["labels"]["app"] = "neither".into()
    });
    source.has_pods(&[]).await;
}

#[tokio::test]
async fn a_pod_of_two_servers_is_one_pod() {
    let api = one_pod().await;
    api.put(
        "modelservers",
        server_with("n", json!({"app": "m", "pod-template-hash": "7d9c8b6f5"})),
    );
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    let id = source.pod("a").id;
    // It stays what it is as long as one of them selects it.
    api.delete("modelservers", "m");
    until("one server is left", async || {
        (!source.has_server("m")).then_some(())
    })
    .await;
    assert_eq!(source.pod("a").id, id);
    api.delete("modelservers", "n");
    source.has_pods(&[]).await;
}

#[tokio::test]
async fn a_server_that_changes_its_selector_changes_its_pods() {
    let api = one_pod().await;
    api.put("pods", cluster_pod("b", "10.0.0.2", &[("app", "other")]));
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    api.edit("modelservers", "m", |server| {
        server["spec"]["workloadSelector"]["matchLabels"]["app"] = "other".into();
    });
    source.has_pods(&["b"]).await;
}

#[tokio::test]
async fn a_pod_with_odd_fields_stops_no_other() {
    let api = one_pod().await;
    let mut nulls = cluster_pod("nulls", "10.0.0.8", &[("app", "m")]);
    nulls["status"]["conditions"] = json!([null, {"type": "Ready", "status": null}]);
    nulls["metadata"]["labels"]["empty"] = Value::Null;
    let mut types = cluster_pod("types", "10.0.0.9", &[("app", "m")]);
    types["status"]["phase"] = json!(7);
    types["status"]["conditions"] = json!({"type": "Ready"});
    types["metadata"]["labels"]["number"] = json!(1);
    types["metadata"]["uid"] = json!([]);
    for pod in [&nulls, &types] {
        api.put("pods", pod.clone());
    }
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    // The same in an event of the watch.
    for pod in [nulls, types] {
        api.delete("pods", pod["metadata"]["name"].as_str().unwrap());
        api.put("pods", pod);
    }
    api.put("pods", cluster_pod("b", "10.0.0.2", &[("app", "m")]));
    source.has_pods(&["a", "b"]).await;
    assert_eq!(source.up(), [true]);
    // A pod is not lost over a label.
    api.edit("pods", "a", |pod| {
        pod["metadata"]["labels"]["odd"] = Value::Null
    });
    until("the label is there", async || {
        (source.pod("a").labels.get("odd")?)
            .is_empty()
            .then_some(())
    })
    .await;
}
