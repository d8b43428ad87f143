//! An API server that is away, hangs, or says no.

use crate::support::{Log, follow, follow_with, options, route, timing, two_pods};
use control::Timing;
use e2e::{ApiServer, Fault, cluster_pod, on_list, on_watch, until};
use std::time::Duration;

#[tokio::test]
async fn while_the_api_server_is_away_the_last_snapshot_stays() {
    let log = Log::start();
    let mut api = two_pods().await;
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    let (b, count) = (source.pod("b"), source.count());
    api.stop().await;
    until("it is known to be away", async || {
        (source.up() == [true, false]).then_some(())
    })
    .await;
    assert_eq!(
        (source.pods(), source.count()),
        (vec!["a".into(), "b".into()], count)
    );
    api.lose("pods", "a");
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    api.restart().await;
    source.has_pods(&["b", "c"]).await;
    until("it is known to be back", async || {
        (source.up() == [true, false, true]).then_some(())
    })
    .await;
    assert_eq!(
        source.pod("b").id,
        b.id,
        "a pod that stayed is the same pod"
    );
    let away = log.with("the API server cannot be asked for");
    assert_eq!(away.len(), 1, "{away:?}");
    assert!(
        away[0].contains("the last snapshot keeps serving"),
        "{away:?}"
    );
    assert_eq!(log.with("the API server answers again").len(), 1);
}

#[tokio::test]
async fn an_api_server_that_comes_late_is_waited_for() {
    let log = Log::start();
    let mut api = two_pods().await;
    api.stop().await;
    let source = follow(&api);
    let line = log.has("the API server cannot be asked for").await;
    assert!(line.contains("not ready until it can"), "{line}");
    assert_eq!((source.count(), source.up()), (0, vec![]));
    api.restart().await;
    source.has_pods(&["a", "b"]).await;
    assert_eq!(source.up(), [true]);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_not_waited_for() {
    let log = Log::start();
    let api = two_pods().await;
    api.scenario(
        "hang",
        [
            on_list("pods", Fault::Hang),
            on_list("modelroutes", Fault::Hang),
        ],
    );
    let timing = Timing {
        answer: Duration::from_millis(200),
        ..timing()
    };
    let source = follow_with(&api, options(), timing);
    source.has_pods(&["a", "b"]).await;
    log.has("no answer within 200ms").await;
}

#[tokio::test]
async fn errors_of_the_api_server_are_retried() {
    let api = two_pods().await;
    let broken = || Fault::Refuse(500, "InternalError", "etcdserver: request timed out");
    let busy = Fault::Refuse(429, "TooManyRequests", "try again later");
    api.scenario(
        "errors",
        [
            on_list("pods", broken()),
            on_list("pods", broken()),
            on_list("pods", busy),
        ],
    );
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
}

#[tokio::test]
async fn a_missing_right_is_one_line_and_no_hot_loop() {
    let log = Log::start();
    let api = two_pods().await;
    let no = "pods is forbidden: User \"system:serviceaccount:default:kthena-router\" cannot list resource \"pods\"";
    let forbidden = || on_list("pods", Fault::Refuse(403, "Forbidden", no));
    api.scenario(
        "forbidden three times",
        [forbidden(), forbidden(), forbidden()],
    );
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    let lines = log.with(no);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("ERROR"), "{lines:?}");
    assert_eq!(api.lists("pods").len(), 4);
}

#[tokio::test]
async fn two_missing_rights_are_two_lines() {
    let log = Log::start();
    let api = two_pods().await;
    let no = |what| on_list(what, Fault::Refuse(403, "Forbidden", "is forbidden"));
    api.scenario("forbidden", [no("modelservers"), no("modelroutes")]);
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    assert_eq!(
        log.with("asked for modelservers: is forbidden (status 403)")
            .len(),
        1
    );
    assert_eq!(
        log.with("asked for modelroutes: is forbidden (status 403)")
            .len(),
        1
    );
}

#[tokio::test]
async fn an_installation_without_providers_serves() {
    let log = Log::start();
    let api = two_pods().await;
    let missing = Fault::Refuse(
        404,
        "NotFound",
        "the server could not find the requested resource",
    );
    api.scenario("no such CRD", [on_list("externalmodelproviders", missing)]);
    api.put("modelroutes", route("r", "x", "m"));
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    assert_eq!(source.up(), [true]);
    assert_eq!(log.with("externalmodelproviders").len(), 1);
}

#[tokio::test]
async fn a_fault_of_the_providers_alone_keeps_nobody_waiting() {
    let log = Log::start();
    let api = two_pods().await;
    let broken = || Fault::Refuse(500, "InternalError", "conversion webhook failed");
    let released = e2e::Gate::closed();
    api.scenario(
        "a broken conversion webhook",
        [
            on_list("externalmodelproviders", broken()),
            on_list("externalmodelproviders", Fault::Slow(released.clone())),
        ],
    );
    api.put("modelroutes", route("r", "x", "m"));
    let source = follow(&api);
    source.has_pods(&["a", "b"]).await;
    // It serves, and says that it cannot ask for one kind, once.
    assert!(source.up().is_empty());
    let lines = log.with("externalmodelproviders");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("conversion webhook failed"), "{lines:?}");
    assert!(lines[0].contains("there are none, so far"), "{lines:?}");
    released.open();
    until("it is known to work", async || {
        (source.up() == [true]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_said_to_be_so() {
    let log = Log::start();
    let api = two_pods().await;
    api.scenario("unreadable", [on_watch("pods", Fault::Unreadable)]);
    let source = follow(&api);
    let line = log.has("the API server cannot be asked for pods").await;
    assert!(
        line.contains("pods: it sent an event that cannot be read; "),
        "{line}"
    );
    api.put("pods", cluster_pod("c", "10.0.0.3", &[("app", "m")]));
    source.has_pods(&["a", "b", "c"]).await;
}

#[tokio::test]
#[should_panic(expected = "the scenario \"never\" was not played to its end")]
async fn a_scenario_that_is_not_played_fails_its_test() {
    let api = ApiServer::start().await;
    api.scenario("never", [on_list("pods", Fault::Hang)]);
}
