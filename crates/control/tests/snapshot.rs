//! From objects to fleets: which pods stay, which are new, and the order of routes.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]

mod common;

use common::{Manifests, route, server};
use control::snapshot::build;
use proptest::prelude::*;
use routing::fleet::{Fleet, Pod, PodIds};
use std::collections::BTreeMap;
use std::sync::Arc;

fn next(text: &str, previous: &Fleet, ids: &PodIds) -> Fleet {
    build(&Manifests::new(text).load().unwrap(), previous, ids)
}

fn by_name(fleet: &Fleet) -> BTreeMap<String, Arc<Pod>> {
    fleet
        .pods()
        .into_values()
        .map(|p| (p.name.to_string(), Arc::clone(p)))
        .collect()
}

#[test]
fn a_pod_is_named_after_its_server_and_endpoint() {
    let fleet = next(
        &server("s", &["{name: a, address: h}"]),
        &Fleet::default(),
        &PodIds::default(),
    );
    assert_eq!(by_name(&fleet).keys().collect::<Vec<_>>(), ["default/s:a"]);
}

#[test]
fn an_unchanged_pod_is_the_same_pod_and_a_changed_one_is_new() {
    let ids = PodIds::default();
    let old = next(
        &server(
            "s",
            &[
                "{name: a, address: h}",
                "{name: b, address: h, port: 1}",
                "{name: c, address: h, port: 2}",
            ],
        ),
        &Fleet::default(),
        &ids,
    );
    let in_flight = by_name(&old)["default/s:a"].begin();
    let new = next(
        &server(
            "s",
            &[
                "{name: d, address: h, port: 3}",
                "{name: b, address: h2, port: 1}",
                "{name: a, address: h}",
                "{name: c, address: h, port: 2}",
            ],
        ),
        &old,
        &ids,
    );
    let (before, after) = (by_name(&old), by_name(&new));
    assert!(Arc::ptr_eq(&before["default/s:a"], &after["default/s:a"]));
    assert_eq!(after["default/s:a"].load.in_flight(), 1);
    drop(in_flight);
    assert_ne!(before["default/s:b"].id, after["default/s:b"].id);
    assert_eq!(old.pods_not_in(&new), [before["default/s:b"].id]);
    assert_eq!(new.pods().len(), 4);
}

#[test]
fn e4_labels_change_and_the_pod_stays_with_its_load_and_its_requests() {
    let ids = PodIds::default();
    let old = next(
        &server("s", &["{name: a, address: h}"]),
        &Fleet::default(),
        &ids,
    );
    let in_flight = by_name(&old)["default/s:a"].begin();
    let new = next(
        &server("s", &["{name: a, address: h, labels: {k: v}}"]),
        &old,
        &ids,
    );
    assert_eq!(old.pods_not_in(&new), [], "its prefix entries stay");
    let pod = &by_name(&new)["default/s:a"];
    assert_eq!((pod.labels["k"].as_str(), pod.load.in_flight()), ("v", 1));
    // What was begun under the old snapshot ends under the new one.
    drop(in_flight);
    assert_eq!(pod.load.in_flight(), 0);
}

#[test]
fn another_engine_is_another_pod() {
    let ids = PodIds::default();
    let text = server("s", &["{name: a, address: h}"]);
    let old = next(&text, &Fleet::default(), &ids);
    let new = next(&text.replace("vLLM", "SGLang"), &old, &ids);
    assert_eq!(old.pods_not_in(&new).len(), 1);
}

#[test]
fn a_server_scaled_to_zero_is_still_a_server() {
    let ids = PodIds::default();
    let old = next(
        &server("s", &["{name: a, address: h}"]),
        &Fleet::default(),
        &ids,
    );
    let new = next(&server("s", &[]), &old, &ids);
    assert_eq!(
        (
            new.servers().count(),
            new.pods().len(),
            old.pods_not_in(&new).len()
        ),
        (1, 0, 1)
    );
}

#[test]
fn routes_are_ordered_by_age_then_version_then_name() {
    let text = [
        "name: d, creationTimestamp: '2026-01-02T00:00:00Z'",
        "name: b, creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '9'",
        "name: c, creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '10'",
        "name: z, namespace: a",
        "name: a",
        "name: e, creationTimestamp: '2026-01-01T00:30:00+01:00'",
    ]
    .map(|meta| route(meta, "[]"))
    .concat();
    let fleet = next(&text, &Fleet::default(), &PodIds::default());
    let order: Vec<_> = fleet.routes().iter().map(|r| r.name.to_string()).collect();
    assert_eq!(
        order,
        [
            "a/z",
            "default/a",
            "default/e",
            "default/c",
            "default/b",
            "default/d"
        ]
    );
}

proptest! {
    /// Against the rule itself: of two following fleets, a name has the same id exactly if its port is the same.
    #[test]
    fn ids_follow_the_identity_of_pods(steps in prop::collection::vec(prop::collection::btree_map(0..6_u8, 1..4_u16, 0..6), 1..6)) {
        let ids = PodIds::default();
        let (mut fleet, mut before) = (Fleet::default(), BTreeMap::new());
        let mut used = std::collections::BTreeSet::new();
        for step in steps {
            let endpoints: Vec<_> = step.iter().map(|(n, port)| format!("{{name: p{n}, address: h, port: {port}}}")).collect();
            let endpoints: Vec<_> = endpoints.iter().map(String::as_str).collect();
            let new = next(&server("s", &endpoints), &fleet, &ids);
            let pods = by_name(&new);
            prop_assert_eq!(pods.len(), step.len());
            let now: BTreeMap<u8, (u16, _)> = step.iter().map(|(&n, &port)| (n, (port, pods[&format!("default/s:p{n}")].id))).collect();
            for (n, (port, id)) in &now {
                let kept = before.get(n).is_some_and(|(old, _)| old == port);
                prop_assert_eq!(kept, before.get(n).is_some_and(|(_, old)| old == id));
                prop_assert_eq!(kept, !used.insert(*id), "a new pod has an id that was never used");
            }
            let gone: std::collections::BTreeSet<_> = before.values().map(|(_, id)| *id).filter(|id| !now.values().any(|(_, i)| i == id)).collect();
            prop_assert_eq!(fleet.pods_not_in(&new), gone.into_iter().collect::<Vec<_>>());
            (fleet, before) = (new, now);
        }
    }
}
