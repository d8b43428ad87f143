//! From the pods of a cluster to fleets.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]

mod common;

use common::{Manifests, server};
use control::Objects;
use control::resources::Pod as ClusterPod;
use control::snapshot::build;
use routing::fleet::{Fleet, ObjectName, PdRole, PodIds};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects of a text, and these pods beside them.
fn objects(text: &str, pods: &[ClusterPod]) -> Objects {
    let mut objects = Manifests::new(text).load().unwrap();
    objects.pods = pods.iter().cloned().map(Arc::new).collect();
    objects
}

/// A ready pod in the namespace default with the label `app: x`.
fn pod(name: &str, uid: &str) -> ClusterPod {
    ClusterPod {
        name: ObjectName::new("default", name),
        uid: uid.into(),
        ip: "10.0.0.1".into(),
        labels: BTreeMap::from([("app".to_owned(), "x".to_owned())]),
        ready: true,
    }
}

fn names(fleet: &Fleet, server: &str) -> Vec<String> {
    let server = fleet.server(&ObjectName::new("default", server)).unwrap();
    let pods = server.pods().iter();
    pods.map(|p| format!("{} {}", p.name, p.endpoint)).collect()
}

#[test]
fn a_pod_keeps_its_name_and_takes_the_port_of_the_server() {
    let objects = objects(&server("s", &[]), &[pod("p", "1")]);
    let fleet = build(&objects, &Fleet::default(), &PodIds::default());
    assert_eq!(names(&fleet, "s"), ["default/p 10.0.0.1:8000"]);
    let (_, pod) = fleet.pods().pop_first().unwrap();
    assert_eq!(pod.uid.as_deref(), Some("1"));
    assert_eq!(pod.labels["app"], "x");
}

#[test]
fn only_ready_pods_of_the_namespace_with_all_labels_are_selected() {
    let two = server("two", &[]).replace("{app: x}", "{app: x, tier: gold}");
    let gold = ClusterPod {
        labels: [("app", "x"), ("tier", "gold"), ("more", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        ..pod("gold", "1")
    };
    let wrong = ClusterPod {
        labels: [("app", "y"), ("tier", "gold")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        ..pod("wrong", "2")
    };
    let waiting = ClusterPod {
        ready: false,
        ..pod("waiting", "3")
    };
    let elsewhere = ClusterPod {
        name: ObjectName::new("elsewhere", "p"),
        ..gold.clone()
    };
    let objects = objects(
        &(server("one", &[]) + &two),
        &[gold, wrong, waiting, elsewhere, pod("plain", "4")],
    );
    let fleet = build(&objects, &Fleet::default(), &PodIds::default());
    assert_eq!(
        names(&fleet, "one"),
        ["default/gold 10.0.0.1:8000", "default/plain 10.0.0.1:8000"]
    );
    assert_eq!(names(&fleet, "two"), ["default/gold 10.0.0.1:8000"]);
    assert_eq!(fleet.pods().len(), 2, "a pod of two servers is one pod");
}

#[test]
fn a_pod_that_servers_ask_for_on_two_ports_is_two_processes() {
    let other = server("other", &[]).replace("8000", "8001");
    let objects = objects(&(server("s", &[]) + &other), &[pod("p", "1")]);
    let ids = PodIds::default();
    let fleet = build(&objects, &Fleet::default(), &ids);
    assert_eq!(names(&fleet, "s"), ["default/p 10.0.0.1:8000"]);
    assert_eq!(names(&fleet, "other"), ["default/p 10.0.0.1:8001"]);
    let next = build(&objects, &fleet, &ids);
    assert!(
        fleet.pods_not_in(&next).is_empty(),
        "both stay what they are"
    );
}

#[test]
fn the_uid_tells_a_pod_from_an_earlier_one_of_its_name() {
    let ids = PodIds::default();
    let text = server("s", &[]);
    let first = build(
        &objects(&text, &[pod("a", "1"), pod("b", "2")]),
        &Fleet::default(),
        &ids,
    );
    let second = build(
        &objects(&text, &[pod("a", "1"), pod("b", "3")]),
        &first,
        &ids,
    );
    let b = first.pods().into_values().find(|p| p.name.name() == "b");
    assert_eq!(first.pods_not_in(&second), [b.unwrap().id]);
    assert_eq!(second.pods().len(), 2);
}

#[test]
fn j3_pods_of_a_cluster_are_paired_by_their_labels() {
    let pair = |group: &str, role: &str| {
        let labels = [("app", "x"), ("group", group), ("role", role)];
        ClusterPod {
            labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..pod(&format!("{role}-{group}"), &format!("{role}-{group}"))
        }
    };
    let text = server("s", &[]).replace(
        "{matchLabels: {app: x}}",
        "{matchLabels: {app: x}, pdGroup: {groupKey: group, prefillLabels: {role: prefill}, decodeLabels: {role: decode}}}",
    );
    let pairs_of = |pods: &[ClusterPod]| {
        let fleet = build(&objects(&text, pods), &Fleet::default(), &PodIds::default());
        let server = fleet.servers().next().unwrap();
        let found = server.disaggregated().unwrap();
        let mut pairs: Vec<_> = found
            .paired_pods()
            .iter()
            .map(|decode| {
                let group = found.group_of(decode.id).unwrap();
                let prefill = &found.groups()[group][0];
                format!("{} {}", prefill.name.name(), decode.name.name())
            })
            .collect();
        pairs.sort_unstable();
        pairs
    };
    let mut pods = vec![
        pair("a", "prefill"),
        pair("a", "decode"),
        pair("b", "prefill"),
        pair("b", "decode"),
    ];
    assert_eq!(
        pairs_of(&pods),
        ["prefill-a decode-a", "prefill-b decode-b"]
    );
    // Labels that move a pod move its role, too, and it stays the pod it was.
    let ids = PodIds::default();
    let first = build(&objects(&text, &pods), &Fleet::default(), &ids);
    let mut swapped = pods.clone();
    swapped[3]
        .labels
        .insert("role".to_owned(), "prefill".to_owned());
    let second = build(&objects(&text, &swapped), &first, &ids);
    assert!(first.pods_not_in(&second).is_empty() && second.pods_not_in(&first).is_empty());
    let found = second.servers().next().unwrap().disaggregated().unwrap();
    assert_eq!(
        found.paired_pods().len(),
        1,
        "group b has no decode pod any more"
    );
    let moved = second
        .pods()
        .into_values()
        .find(|p| p.name.name() == "decode-b");
    assert_eq!(found.role_of(moved.unwrap().id), Some(PdRole::Prefill));
    // A pod that is not ready is not there, whatever its labels.
    pods[2].ready = false;
    assert_eq!(pairs_of(&pods), ["prefill-a decode-a"]);
}
