//! Lists, watches, bookmarks, and versions that are gone.

use crate::support::{follow, follow_with, options, route, server, timing, two_pods};
use control::Timing;
use e2e::{ApiServer, Fault, Gate, cluster_pod, on_list, on_watch, until};
use std::time::Duration;

#[tokio::test]
async fn nothing_is_published_before_every_kind_was_listed() {
    for resource in [
        "modelservers",
        "modelroutes",
        "externalmodelproviders",
        "pods",
    ] {
        let api = two_pods().await;
        let gate = Gate::closed();
        api.scenario("slow list", [on_list(resource, Fault::Slow(gate.clone()))]);
        let source = follow(&api);
        api.played().await;
        let other = match resource {
            "modelroutes" => "modelservers",
            _ => "modelroutes",
        };
        until("another kind is watched", async || {
            (!api.watches(other).is_empty()).then_some(())
        })
        .await;
        assert_eq!((source.count(), source.up()), (0, vec![]), "{resource}");
        gate.open();
        source.has_pods(&["a", "b"]).await;
        assert_eq!(source.up(), [true]);
    }
}

#[tokio::test]
async fn an_empty_cluster_is_a_cluster() {
    let api = ApiServer::start().await;
    let source = follow(&api);
    source.synced().await;
    assert!(source.pods().is_empty());
    assert!(api.lists("pods").is_empty(), "there is no pod to ask for");
    api.put("modelservers", server("m"));
    api.put("pods", cluster_pod("a", "10.0.0.1", &[("app", "m")]));
    source.has_pods(&["a"]).await;
    api.delete("modelservers", "m");
    source.has_pods(&[]).await;
}

#[tokio::test]
async fn changes_are_followed() {
    let api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    source.has_pods(&["a", "b", "c"]).await;
    api.delete("pods", "a");
    source.has_pods(&["b", "c"]).await;
    api.put("modelroutes", route("r", "x", "m"));
    source.routes("x", Some("m")).await;
    api.delete("modelroutes", "r");
    source.routes("x", None).await;
    assert_eq!(
        api.lists("pods").len(),
        1,
        "one list, and a watch from there"
    );
}

#[tokio::test]
async fn lists_come_in_pages() {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    for n in 0..1203 {
        api.put(
            "pods",
            cluster_pod(&format!("p{n:04}"), "10.0.0.1", &[("app", "m")]),
        );
    }
    let source = follow(&api);
    source.synced().await;
    assert_eq!(source.pods().len(), 1203);
    let pages = api.lists("pods");
    assert_eq!(pages.len(), 3);
    assert!(pages.iter().all(|page| page.query["limit"] == "500"));
    assert!(
        pages[1..]
            .iter()
            .all(|page| page.query.contains_key("continue"))
    );
}

#[tokio::test]
async fn a_page_that_is_gone_begins_a_fresh_list() {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    for n in 0..700 {
        api.put(
            "pods",
            cluster_pod(&format!("p{n:04}"), "10.0.0.1", &[("app", "m")]),
        );
    }
    api.scenario(
        "the second page is gone",
        [on_list("pods", Fault::Usual), on_list("pods", Fault::Gone)],
    );
    let source = follow(&api);
    source.synced().await;
    api.played().await;
    assert_eq!(source.pods().len(), 700, "no pod twice, none missing");
    assert_eq!(api.lists("pods").len(), 4);
    assert_eq!(source.up(), [true]);
}

#[tokio::test]
async fn a_version_that_is_gone_leads_to_a_list_that_finds_what_was_deleted() {
    let api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    api.lose("pods", "a");
    api.compact();
    api.end_watches();
    source.has_pods(&["b"]).await;
    assert_eq!(api.lists("pods").len(), 2);
    assert_eq!(source.up(), [true], "the API server was never away");
}

#[tokio::test]
async fn gone_as_the_first_event_is_gone() {
    let api = two_pods().await;
    api.scenario(
        "gone",
        [on_watch("pods", Fault::Gone), on_watch("pods", Fault::Gone)],
    );
    let source = follow(&api);
    api.played().await;
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    source.has_pods(&["a", "b", "c"]).await;
    assert!(api.lists("pods").len() >= 3);
}

#[tokio::test]
async fn bookmarks_spare_a_list() {
    let api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    // The newest version of a pod is older than what the API server remembers from now on.
    api.put("modelroutes", route("r", "x", "m"));
    source.routes("x", Some("m")).await;
    until("all are watched", async || {
        (!api.watches("pods").is_empty()).then_some(())
    })
    .await;
    api.bookmark();
    // What comes after the bookmark on the same stream tells that the bookmark has arrived.
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    source.has_pods(&["a", "b", "c"]).await;
    api.put("modelroutes", route("r2", "y", "m"));
    source.routes("y", Some("m")).await;
    api.bookmark();
    api.put("modelroutes", route("r3", "z", "m"));
    source.routes("z", Some("m")).await;
    api.end_watches();
    api.put("pods", cluster_pod("d", "10.0.0.4", &[("app", "m")]));
    source.has_pods(&["a", "b", "c", "d"]).await;
    assert_eq!(api.lists("pods").len(), 1);
    let versions: Vec<u64> = api
        .watches("pods")
        .iter()
        .map(|w| w.query["resourceVersion"].parse().unwrap())
        .collect();
    let newest_pod = api.get("pods", "c")["metadata"]["resourceVersion"].clone();
    assert!(
        versions.last().unwrap() > &newest_pod.as_str().unwrap().parse().unwrap(),
        "the watch goes on from the bookmark: {versions:?}"
    );
}

#[tokio::test]
async fn a_cut_connection_loses_nothing() {
    let api = two_pods().await;
    api.scenario(
        "cut in the middle of an event, twice",
        [
            on_watch("pods", Fault::CutAfter(1)),
            on_watch("pods", Fault::CutAfter(0)),
        ],
    );
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    api.put("pods", cluster_pod("d", "10.0.0.4", &[("app", "m")]));
    api.played().await;
    api.delete("pods", "a");
    source.has_pods(&["b", "c", "d"]).await;
}

#[tokio::test]
async fn a_list_that_is_cut_is_asked_for_again() {
    let api = two_pods().await;
    api.scenario(
        "cut",
        [
            on_list("modelservers", Fault::CutAfter(0)),
            on_list("pods", Fault::CutAfter(0)),
        ],
    );
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
}

#[tokio::test]
async fn a_lost_delete_is_found_by_the_next_list() {
    let api = two_pods().await;
    let timing = Timing {
        relist: Duration::from_millis(200),
        ..timing()
    };
    let source = follow_with(&api, options(), timing);
    source.has_pods(&["a", "b"]).await;
    let id = source.pod("b").id;
    api.lose("pods", "a");
    source.has_pods(&["b"]).await;
    assert_eq!(
        source.pod("b").id,
        id,
        "a list changes nothing for those that stay"
    );
}

#[tokio::test]
async fn many_events_are_few_snapshots() {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    let source = follow(&api);
    source.synced().await;
    for n in 0..3000 {
        api.put(
            "pods",
            cluster_pod(&format!("p{n:04}"), "10.0.0.1", &[("app", "m")]),
        );
    }
    until("all pods are there", async || {
        (source.pods().len() == 3000).then_some(())
    })
    .await;
    assert!(source.count() < 100, "{} snapshots", source.count());
}

#[tokio::test]
async fn what_is_not_kept_of_a_pod_changes_nothing() {
    let api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    let before = source.count();
    for n in 0..20 {
        api.edit("pods", "a", |pod| {
            pod["metadata"]["annotations"]["note"] = n.into()
        });
    }
    api.delete("pods", "b");
    source.has_pods(&["a"]).await;
    assert_eq!(source.count(), before + 1);
}
