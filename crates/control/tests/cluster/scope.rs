//! What is asked for: namespaces and selectors.

use crate::support::{follow, follow_with, options, server, server_with, timing};
use control::{ClusterOptions, ClusterSource, ConnectError};
use e2e::{ApiServer, Asked, cluster_pod, until};
use serde_json::json;

/// Namespace and label selector of the newest list of pods.
fn newest(api: &ApiServer) -> (Option<String>, Option<String>) {
    let lists = api.lists("pods");
    let Asked {
        namespace, query, ..
    } = lists.last().expect("a list").clone();
    (namespace, query.get("labelSelector").cloned())
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn pods_are_narrowed_to_what_all_servers_ask_for() {
    let api = ApiServer::start().await;
    api.put(
        "modelservers",
        server_with("m", json!({"app": "x", "tier": "gold"})),
    );
    api.put(
        "pods",
        cluster_pod("a", "10.0.0.1", &[("app", "x"), ("tier", "gold")]),
    );
    api.put(
        "pods",
        cluster_pod("b", "10.0.0.2", &[("app", "y"), ("size", "7b")]),
    );
    let mut elsewhere = cluster_pod("c", "10.0.0.3", &[("app", "x"), ("tier", "gold")]);
    elsewhere["metadata"]["namespace"] = "other".into();
    api.put("pods", elsewhere);
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    assert_eq!(newest(&api), (text("default"), text("app=x,tier=gold")));
    assert_eq!(
        api.lists("pods")[0].query["fieldSelector"],
        "status.phase!=Succeeded,status.phase!=Failed"
    );
    let id = source.pod("a").id;

    // A second server with one key in common.
    api.put(
        "modelservers",
        server_with("n", json!({"app": "y", "size": "7b"})),
    );
    source.has_pods(&["a", "b"]).await;
    assert_eq!(newest(&api), (text("default"), text("app in (x,y)")));
    assert_eq!(source.pod("a").id, id, "another question is no other pod");

    // One in another namespace.
    let mut other = server_with("m", json!({"app": "x"}));
    other["metadata"]["namespace"] = "other".into();
    api.put("modelservers", other);
    source.has_pods(&["a", "b", "c"]).await;
    assert_eq!(newest(&api), (None, text("app in (x,y)")));

    // One without a key in common.
    api.put(
        "modelservers",
        server_with("o", json!({"unlike": "others"})),
    );
    until("everything is asked for", async || {
        (newest(&api) == (None, None)).then_some(())
    })
    .await;
    source.has_pods(&["a", "b", "c"]).await;

    // And back.
    api.delete("modelservers", "o");
    until("less is asked for again", async || {
        (newest(&api) == (None, text("app in (x,y)"))).then_some(())
    })
    .await;
    source.has_pods(&["a", "b", "c"]).await;
}

#[tokio::test]
async fn a_change_that_does_not_change_the_question_asks_nothing() {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    api.edit("modelservers", "m", |server| {
        server["spec"]["workloadPort"]["port"] = 9000.into()
    });
    until("the port changes", async || {
        (source.pod("a").endpoint.port == 9000).then_some(())
    })
    .await;
    assert_eq!(api.lists("pods").len(), 1);
}

#[tokio::test]
async fn one_namespace_is_all_there_is() {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    let mut elsewhere = server("n");
    elsewhere["metadata"]["namespace"] = "other".into();
    api.put("modelservers", elsewhere);
    let options = ClusterOptions {
        namespace: text("other"),
        ..options()
    };
    let source = follow_with(&api, options, timing());
    source.synced().await;
    assert_eq!(source.fleet().servers().count(), 1);
    for resource in [
        "modelservers",
        "modelroutes",
        "externalmodelproviders",
        "pods",
    ] {
        let lists = api.lists(resource);
        assert!(
            lists
                .iter()
                .all(|l| l.namespace.as_deref() == Some("other")),
            "{resource}"
        );
        assert_eq!(lists.len(), 1);
    }
}

#[tokio::test]
async fn a_namespace_has_the_name_of_one() {
    let options = ClusterOptions {
        namespace: text("No/Name"),
        ..options()
    };
    let server = "http://127.0.0.1:1".parse().unwrap();
    let error = ClusterSource::at(server, options, timing()).unwrap_err();
    assert!(matches!(error, ConnectError::Namespace(_)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("--namespace: Invalid value: \"No/Name\""),
        "{error}"
    );
}

#[tokio::test]
async fn a_selector_that_would_be_too_long_asks_for_the_key_alone() {
    let api = ApiServer::start().await;
    for n in 0..200 {
        let app = format!("{}-{n}", "x".repeat(40));
        api.put(
            "modelservers",
            server_with(&format!("m{n}"), json!({"app": app})),
        );
    }
    api.put(
        "pods",
        cluster_pod(
            "a",
            "10.0.0.1",
            &[("app", &format!("{}-7", "x".repeat(40)))],
        ),
    );
    let source = follow(&api);
    source.has_pods(&["a"]).await;
    assert_eq!(newest(&api), (text("default"), text("app")));
}
