//! Plans of two pods: who is a candidate for what, two passes, and what is recorded.

mod schedule_support;

use routing::fleet::{Disaggregated, Gauges, ModelServer, PdGroup, PdRole, Pod, PodId};
use routing::pd::Connector;
use routing::prompt::Prompt;
use routing::schedule::{Ask, PairPlan, ScheduleError, Scheduler};
use schedule_support::{Seen, configured, pod, scheduler, server};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

fn labels(text: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    text.iter().map(own).collect()
}

fn group() -> PdGroup {
    PdGroup {
        group_key: "group".into(),
        prefill_labels: labels(&[("role", "prefill")]),
        decode_labels: labels(&[("role", "decode")]),
    }
}

fn member(id: u32, group: &str, role: &str) -> Arc<Pod> {
    let mut pod = Arc::into_inner(pod(id)).expect("the only one");
    pod.labels = labels(&[("group", group), ("role", role), ("app", "m")]);
    Arc::new(pod)
}

fn pairs_of(pods: Vec<Arc<Pod>>) -> ModelServer {
    server(pods).disaggregate(&group(), Connector::Http)
}

fn ask(server: &ModelServer) -> &Disaggregated {
    server.disaggregated().expect("pairs")
}

fn plan(
    scheduler: &Scheduler,
    server: &ModelServer,
    prompt: &str,
    draw: u64,
) -> (Result<PairPlan, ScheduleError>, Seen) {
    let mut seen = Seen::default();
    let prompt = Prompt::from_text(prompt);
    let wanted = Ask {
        model: "m",
        prompt: &prompt,
        draw,
    };
    let plan = scheduler.plan_pairs(&wanted, ask(server), &mut seen);
    (plan, seen)
}

/// (decode, prefill) of each pair.
fn ids(plan: &PairPlan) -> Vec<(u32, u32)> {
    let pair = |p: &routing::schedule::Pair| (p.decode.id.0, p.prefill[0].id.0);
    plan.pairs.iter().map(pair).collect()
}

fn busy(pod: &Arc<Pod>, waiting: u32) {
    pod.load.publish(
        &Gauges {
            waiting,
            ..Gauges::default()
        },
        1,
    );
}

#[test]
fn j3_labels_decide_role_and_group() {
    let place = |text: &[(&str, &str)]| {
        let labels = labels(text);
        group()
            .place(&labels)
            .map(|(role, group)| (role, group.to_owned()))
    };
    let of = |role, group: &str| Some((role, group.to_owned()));
    assert_eq!(
        place(&[("group", "a"), ("role", "decode")]),
        of(PdRole::Decode, "a")
    );
    assert_eq!(
        place(&[("group", ""), ("role", "prefill"), ("x", "y")]),
        of(PdRole::Prefill, "")
    );
    assert_eq!(place(&[("role", "decode")]), None, "without a group");
    assert_eq!(place(&[("group", "a"), ("role", "other")]), None);
    // Decode is tested first, and no labels select nothing.
    let both = PdGroup {
        prefill_labels: labels(&[("role", "decode")]),
        ..group()
    };
    let decode = labels(&[("group", "a"), ("role", "decode")]);
    assert_eq!(both.place(&decode), Some((PdRole::Decode, "a")));
    let nobody = PdGroup {
        decode_labels: BTreeMap::new(),
        prefill_labels: BTreeMap::new(),
        ..group()
    };
    assert_eq!(nobody.place(&decode), None);
}

#[test]
fn j3_a_decode_pod_gets_a_prefill_pod_of_its_group_only() {
    let server = pairs_of(vec![
        member(0, "a", "prefill"),
        member(1, "a", "decode"),
        member(2, "b", "prefill"),
        member(3, "b", "decode"),
        member(4, "c", "decode"),
        member(5, "d", "prefill"),
        member(6, "a", "neither"),
    ]);
    let found = ask(&server);
    let roles: Vec<_> = (0..7).map(|id| found.role_of(PodId(id))).collect();
    let (prefill, decode) = (Some(PdRole::Prefill), Some(PdRole::Decode));
    assert_eq!(
        roles,
        [prefill, decode, prefill, decode, decode, prefill, None]
    );
    assert_eq!(found.decode_pods().len(), 3);
    for draw in 0..50 {
        let mut pairs = ids(&plan(&scheduler(&[], &[]), &server, "x", draw)
            .0
            .expect("a plan"));
        pairs.sort_unstable();
        assert_eq!(pairs, [(1, 0), (3, 2)]);
    }
}

#[test]
fn c8_decode_and_prefill_pods_are_scored_in_passes_of_their_own() {
    let scheduler = configured(
        &["least-request"],
        &[("prefix-cache", 1)],
        json!([{"name": "prefix-cache", "args": {"topKMatches": 2}}]),
    );
    let pods: Vec<_> = (0..3)
        .map(|id| member(id, "a", "prefill"))
        .chain((3..6).map(|id| member(id, "a", "decode")))
        .collect();
    (0..6).for_each(|id| scheduler.admit(PodId(id)));
    let server = pairs_of(pods);
    let (first, seen) = plan(&scheduler, &server, "hello", 0);
    assert_eq!(seen.by("prefix-cache").len(), 3, "the last pass");
    assert_eq!(
        seen.steps
            .iter()
            .filter(|s| *s == "prefix-cache scored")
            .count(),
        2,
        "one group is one pass, however many of its decode pods are candidates"
    );
    let memo = first.expect("a plan").memo.expect("a memo");
    (0..6).for_each(|id| {
        scheduler.served(&memo, PodId(id));
    });
    // Each side has topKMatches places of its own.
    let (second, seen) = plan(&scheduler, &server, "hello", 0);
    assert_eq!(
        seen.steps.iter().filter(|s| *s == "1 of 1 matched").count(),
        2
    );
    let pair = ids(&second.expect("a plan"))[0];
    let scores = |draw| {
        plan(&scheduler, &server, "hello", draw)
            .1
            .by("prefix-cache")
    };
    assert_eq!(scores(0).iter().filter(|s| **s == 100).count(), 2);
    assert!((3..6).contains(&pair.0) && pair.1 < 3, "{pair:?}");
}

#[test]
fn d2_both_pods_of_a_pair_are_recorded_and_found_again() {
    let scheduler = scheduler(&[], &["prefix-cache"]);
    let mut pods = Vec::new();
    for id in 0..4 {
        pods.push(member(id, "a", "prefill"));
    }
    for id in 4..8 {
        pods.push(member(id, "a", "decode"));
    }
    (0..8).for_each(|id| scheduler.admit(PodId(id)));
    let server = pairs_of(pods);
    let memo = plan(&scheduler, &server, "hello", 0)
        .0
        .expect("a plan")
        .memo;
    let memo = memo.expect("a memo");
    scheduler.served(&memo, PodId(6));
    scheduler.served(&memo, PodId(1));
    for draw in 0..50 {
        let found = plan(&scheduler, &server, "hello", draw).0.expect("a plan");
        assert_eq!(ids(&found)[0], (6, 1));
        assert_eq!(found.pairs.len(), 4);
        assert!(
            ids(&found).iter().all(|(_, prefill)| *prefill == 1),
            "the best of the group"
        );
    }
}

#[test]
fn j3_filters_drop_pods_of_both_sides() {
    let scheduler = scheduler(&["least-request"], &[]);
    let pods = [
        member(0, "a", "prefill"),
        member(1, "a", "decode"),
        member(2, "b", "prefill"),
        member(3, "b", "prefill"),
        member(4, "b", "decode"),
    ];
    let server = pairs_of(pods.to_vec());
    let now = || plan(&scheduler, &server, "x", 7).0.map(|plan| ids(&plan));
    busy(&pods[0], 10);
    busy(&pods[2], 10);
    assert_eq!(now(), Ok(vec![(4, 3)]), "group a has no prefill pod left");
    busy(&pods[3], 10);
    assert_eq!(now(), Err(ScheduleError::NoPairs));
    busy(&pods[1], 10);
    busy(&pods[4], 10);
    let dropped = Err(ScheduleError::AllFiltered {
        plugin: "least-request",
    });
    assert_eq!(now(), dropped);
}

#[test]
fn j3_no_pair_is_an_error_that_says_which_side_is_missing() {
    let scheduler = scheduler(&[], &[]);
    let error = |pods| {
        plan(&scheduler, &pairs_of(pods), "x", 0)
            .0
            .expect_err("no pair")
    };
    let no_decode = error(vec![member(0, "a", "prefill")]);
    assert_eq!(no_decode.to_string(), "no decode pod found");
    let no_pair = error(vec![member(0, "a", "prefill"), member(1, "b", "decode")]);
    assert_eq!(
        no_pair.to_string(),
        "no valid prefill-decode pod pairs found"
    );
}

#[test]
fn j3_a_decode_pod_without_prefill_takes_no_place_among_the_best() {
    let mut pods: Vec<_> = (0..20).map(|id| member(id, "lonely", "decode")).collect();
    pods.push(member(20, "a", "prefill"));
    pods.push(member(21, "a", "decode"));
    let server = pairs_of(pods);
    for draw in 0..50 {
        let found = plan(&scheduler(&[], &[]), &server, "x", draw)
            .0
            .expect("a plan");
        assert_eq!(ids(&found), [(21, 20)]);
    }
}

#[test]
fn j3_at_most_five_pairs_are_planned_and_equal_ones_are_spread() {
    let pods = (0..8)
        .map(|id| member(id, "a", "prefill"))
        .chain((8..16).map(|id| member(id, "a", "decode")))
        .collect();
    let server = pairs_of(pods);
    let (mut decode, mut prefill) = (BTreeMap::new(), BTreeMap::new());
    for draw in 0..4000u64 {
        let found = plan(&scheduler(&[], &[]), &server, "x", draw)
            .0
            .expect("a plan");
        assert_eq!(found.pairs.len(), 5);
        let (d, p) = ids(&found)[0];
        *decode.entry(d).or_insert(0) += 1;
        *prefill.entry(p).or_insert(0) += 1;
    }
    // 500 each are expected; 110 are five standard deviations.
    for counts in [decode, prefill] {
        assert_eq!(counts.len(), 8);
        assert!(
            counts.values().all(|n| (390..610).contains(n)),
            "{counts:?}"
        );
    }
}

#[test]
fn j2_a_pinned_pair_is_taken_unscored_while_both_pass_and_share_a_group() {
    let scheduler = scheduler(&["least-request"], &["prefix-cache"]);
    let pods = [
        member(0, "a", "prefill"),
        member(1, "a", "decode"),
        member(2, "b", "prefill"),
    ];
    let server = pairs_of(pods.to_vec());
    let prompt = Prompt::from_text("hello");
    let wanted = Ask {
        model: "m",
        prompt: &prompt,
        draw: 0,
    };
    let mut seen = Seen::default();
    let mut pinned = |prefill: &Arc<Pod>, decode: &Arc<Pod>| {
        scheduler.pinned_pair(&wanted, ask(&server), prefill, decode, &mut seen)
    };
    let plan = pinned(&pods[0], &pods[1]).expect("the pair");
    assert_eq!(ids(&plan), [(1, 0)]);
    assert_eq!((plan.memo, plan.pairs[0].prefill.len()), (None, 1));
    assert!(pinned(&pods[2], &pods[1]).is_none(), "another group");
    assert!(
        pinned(&pods[1], &pods[0]).is_none(),
        "the roles are swapped"
    );
    assert!(
        pinned(&pods[0], &member(9, "a", "decode")).is_none(),
        "gone"
    );
    for at in [0, 1] {
        busy(&pods[at], 10);
        assert!(pinned(&pods[0], &pods[1]).is_none(), "pod {at} is filtered");
        busy(&pods[at], 0);
    }
    assert!(pinned(&pods[0], &pods[1]).is_some());
    assert!(
        !seen.steps.iter().any(|s| s.contains("scored")),
        "{:?}",
        seen.steps
    );
}

#[test]
fn pods_that_take_no_connection_are_asked_after_the_others() {
    let server = pairs_of(vec![
        member(1, "a", "decode"),
        member(2, "a", "prefill"),
        member(3, "a", "prefill"),
        member(4, "b", "decode"),
        member(5, "b", "prefill"),
    ]);
    let scheduler = scheduler(&[], &[]);
    for draw in 0..32 {
        let put_behind = |gone: &[u32]| {
            let mut plan = plan(&scheduler, &server, "x", draw).0.unwrap();
            plan.put_behind(|pod| gone.contains(&pod.id.0));
            plan
        };
        assert_eq!(ids(&put_behind(&[1]))[1].0, 1, "its decode pod is gone");
        assert_eq!(
            ids(&put_behind(&[5]))[1],
            (4, 5),
            "its only prefill pod is gone"
        );
        // Another prefill pod stands in; the pair keeps its place.
        let stood_in = put_behind(&[2]);
        let before = ids(&put_behind(&[]));
        let places = |ids: &[(u32, u32)]| ids.iter().map(|(decode, _)| *decode).collect::<Vec<_>>();
        assert_eq!(places(&ids(&stood_in)), places(&before));
        assert!(ids(&stood_in).contains(&(1, 3)));
    }
}

/// Walks the turns of a plan in which these pods fail; the pairs as (decode, prefill).
fn walk(plan: &PairPlan, before: &[u32], bad: &[u32]) -> Vec<(u32, u32)> {
    let pods = |plan: &PairPlan| {
        let both = |p: &routing::schedule::Pair| {
            let mut all: Vec<_> = p.prefill.to_vec();
            all.push(Arc::clone(&p.decode));
            all
        };
        plan.pairs.iter().flat_map(both).collect::<Vec<_>>()
    };
    let all = pods(plan);
    let known: Vec<_> = before
        .iter()
        .map(|id| Arc::clone(all.iter().find(|pod| pod.id.0 == *id).expect("a pod")))
        .collect();
    let mut turns = plan.turns(&known);
    let mut walked = Vec::new();
    while let Some((decode, prefill)) = turns.next() {
        walked.push((decode.id.0, prefill.id.0));
        assert!(walked.len() < 20, "{walked:?}");
        let at_fault = [prefill, decode]
            .into_iter()
            .find(|pod| bad.contains(&pod.id.0));
        match at_fault {
            Some(pod) => turns.failed(Arc::clone(pod)),
            None => return walked,
        }
    }
    walked
}

/// A plan with the pods of each kind in the order of their ids.
fn in_order(server: &ModelServer) -> PairPlan {
    let mut plan = plan(&scheduler(&[], &[]), server, "x", 0)
        .0
        .expect("a plan");
    plan.pairs.sort_by_key(|pair| pair.decode.id);
    for pair in &mut plan.pairs {
        pair.prefill.sort_by_key(|pod| pod.id);
    }
    plan
}

#[test]
fn j3_a_decode_pod_is_asked_again_with_the_prefill_pods_that_are_left() {
    let pods = vec![
        member(0, "a", "prefill"),
        member(1, "a", "prefill"),
        member(2, "a", "prefill"),
        member(3, "a", "decode"),
    ];
    let server = pairs_of(pods);
    let plan = in_order(&server);
    assert_eq!(walk(&plan, &[], &[0]), [(3, 0), (3, 1)]);
    assert_eq!(walk(&plan, &[], &[0, 1]), [(3, 0), (3, 1), (3, 2)]);
    assert_eq!(
        walk(&plan, &[], &[0, 1, 2]),
        [(3, 0), (3, 1), (3, 2)],
        "none twice"
    );
    assert_eq!(
        walk(&plan, &[], &[3]),
        [(3, 0)],
        "decode itself is to blame"
    );
    // After a pinned pair that failed.
    assert_eq!(walk(&plan, &[3, 0], &[0, 1]), [(3, 1), (3, 2)]);
}

#[test]
fn j3_other_decode_pods_come_before_one_is_asked_again() {
    let pods = vec![
        member(0, "a", "prefill"),
        member(1, "a", "prefill"),
        member(2, "a", "decode"),
        member(3, "b", "prefill"),
        member(4, "b", "decode"),
    ];
    let server = pairs_of(pods);
    let plan = in_order(&server);
    assert_eq!(walk(&plan, &[], &[0, 3]), [(2, 0), (4, 3), (2, 1)]);
}

#[test]
fn j3_sound_pairs_come_before_decode_pods_whose_prefill_pod_has_failed() {
    let pods = vec![
        member(0, "a", "prefill"),
        member(1, "a", "decode"),
        member(2, "a", "decode"),
        member(3, "a", "decode"),
        member(4, "b", "prefill"),
        member(5, "b", "decode"),
    ];
    let server = pairs_of(pods);
    let plan = in_order(&server);
    assert_eq!(walk(&plan, &[], &[0]), [(1, 0), (5, 4)]);
    // It may have been of the moment, and there is nobody else.
    let all = [(1, 0), (5, 4), (2, 0), (3, 0)];
    assert_eq!(walk(&plan, &[], &[0, 4]), all);
    assert_eq!(walk(&plan, &[1, 0], &[]), [(5, 4)], "after a pinned pair");
}
