//! The formulas of the plugins.

mod schedule_support;

use routing::fleet::{Gauges, Pod};
use schedule_support::{configured, known, plan, pod, scheduler, scores_of, server, waiting};
use serde_json::json;
use std::sync::Arc;

fn running(id: u32, running: u32) -> Arc<Pod> {
    known(
        id,
        Gauges {
            running,
            ..Gauges::default()
        },
    )
}

fn latency(id: u32, ttft: f32, tpot: f32) -> Arc<Pod> {
    known(
        id,
        Gauges {
            ttft,
            tpot,
            ..Gauges::default()
        },
    )
}

fn usage(id: u32, kv_usage: f32) -> Arc<Pod> {
    known(
        id,
        Gauges {
            kv_usage,
            ..Gauges::default()
        },
    )
}

#[test]
fn j1_least_request_filter_keeps_pods_below_the_limit() {
    let kept = |limit: i64, pods| {
        let config = json!([{"name": "least-request", "args": {"maxWaitingRequests": limit}}]);
        let (plan, seen) = plan(
            &configured(&["least-request"], &[], config),
            &server(pods),
            "",
            0,
        );
        plan.map(|_| seen.totals.into_keys().collect::<Vec<_>>())
    };
    let pods = || vec![waiting(0, 0), waiting(1, 2), waiting(2, 3), pod(3)];
    assert_eq!(
        kept(3, pods()),
        Ok(vec![0, 1, 3]),
        "an unknown pod is not held to be full"
    );
    assert_eq!(
        kept(0, pods()),
        Ok(vec![0, 1, 2, 3]),
        "0 is the default of 10"
    );
    assert_eq!(kept(i64::MAX, pods()), Ok(vec![0, 1, 2, 3]));
    assert!(
        kept(-1, pods()[..3].to_vec()).is_err(),
        "negative keeps nothing"
    );
}

#[test]
fn j1_least_request_score_counts_queued_requests_a_hundredfold() {
    let scheduler = scheduler(&[], &["least-request"]);
    let pods = vec![running(0, 0), running(1, 4), running(2, 1), pod(3)];
    let in_flight: Vec<_> = [0, 4, 2, 1]
        .iter()
        .zip(&pods)
        .flat_map(|(n, p)| (0..*n).map(|_| p.begin()))
        .collect();
    // Bases 0, 4, 2 + 100 and, for the unknown pod, 1 + 100.
    assert_eq!(
        scores_of(&scheduler, &server(pods.clone()), "least-request"),
        [100, 96, 0, 0]
    );
    drop(in_flight);
    assert_eq!(
        scores_of(&scheduler, &server(pods), "least-request"),
        [100; 4],
        "nobody is busy"
    );
}

#[test]
fn j1_least_latency_scores_by_place_between_best_and_worst() {
    let pods = || {
        server(vec![
            latency(0, 0.1, 0.03),
            latency(1, 0.3, 0.01),
            latency(2, 0.2, 0.02),
        ])
    };
    let with = |factor| {
        let config = json!([{"name": "least-latency", "args": {"TTFTTPOTWeightFactor": factor}}]);
        scores_of(
            &configured(&[], &[("least-latency", 1)], config),
            &pods(),
            "least-latency",
        )
    };
    assert_eq!(with(0.5), [50, 50, 50]);
    assert_eq!(with(1.0), [100, 0, 50], "1 is TTFT only");
    assert_eq!(with(0.0), [0, 100, 50], "0 is TPOT only");
    assert_eq!(with(0.25), [25, 75, 50]);
}

#[test]
fn j1_least_latency_gives_50_to_pods_without_samples_and_leaves_them_out() {
    let scheduler = scheduler(&[], &["least-latency"]);
    let pods = vec![
        latency(0, 0.1, 0.01),
        latency(1, 0.0, 0.5),
        latency(2, 9.0, 0.0),
        pod(3),
        latency(4, 0.2, 0.02),
    ];
    assert_eq!(
        scores_of(&scheduler, &server(pods), "least-latency"),
        [100, 50, 50, 50, 0]
    );
    let odd = vec![
        latency(0, f32::NAN, 0.1),
        latency(1, f32::INFINITY, 0.1),
        latency(2, 0.5, 0.1),
    ];
    assert_eq!(
        scores_of(&scheduler, &server(odd), "least-latency"),
        [50, 50, 100]
    );
    let equal = vec![latency(0, 0.5, 0.1), latency(1, 0.5, 0.1)];
    assert_eq!(
        scores_of(&scheduler, &server(equal), "least-latency"),
        [100, 100]
    );
}

#[test]
fn j1_gpu_usage_is_the_free_share_rounded_down() {
    let scheduler = scheduler(&[], &["gpu-usage"]);
    let readings = [0.0, 0.3, 0.9, 0.995, 1.0, 1.5, -0.5, f32::NAN];
    let mut pods: Vec<_> = (0..)
        .zip(readings)
        .map(|(id, reading)| usage(id, reading))
        .collect();
    pods.push(pod(8));
    assert_eq!(
        scores_of(&scheduler, &server(pods), "gpu-usage"),
        [100, 70, 10, 0, 0, 0, 100, 50, 50]
    );
    for percent in 0..=100u8 {
        let pods = server(vec![usage(0, f32::from(percent) / 100.0)]);
        assert_eq!(scores_of(&scheduler, &pods, "gpu-usage"), [100 - percent]);
    }
}

#[test]
fn an_expired_reading_makes_a_pod_unknown() {
    let busy = known(
        0,
        Gauges {
            waiting: 99,
            kv_usage: 0.9,
            ttft: 1.0,
            tpot: 1.0,
            ..Gauges::default()
        },
    );
    busy.load.expire();
    let scheduler = scheduler(
        &["least-request"],
        &["gpu-usage", "least-latency", "least-request"],
    );
    let (_, seen) = plan(&scheduler, &server(vec![busy]), "", 0);
    assert_eq!(seen.totals[&0], 50 + 50 + 100);
}

#[test]
fn j1_random_is_uniform_over_0_to_100_and_over_pods() {
    let scheduler = scheduler(&[], &["random"]);
    let server = server((0..3).map(pod).collect());
    let (mut counts, mut wins) = ([0u32; 101], [0u32; 3]);
    for draw in 0..10_100 {
        let (plan, seen) = plan(&scheduler, &server, "", draw);
        wins[plan.expect("a plan").attempts[0].id.0 as usize] += 1;
        seen.by("random")
            .iter()
            .for_each(|&score| counts[usize::from(score)] += 1);
    }
    // Expected 300 each, standard deviation 17; and a third of 10,100, standard deviation 47.
    assert!(counts.iter().all(|n| (210..390).contains(n)), "{counts:?}");
    assert!(wins.iter().all(|n| (3130..3600).contains(n)), "{wins:?}");
}

#[test]
fn j1_lora_affinity_keeps_pods_that_list_the_model() {
    let pods = vec![pod(0), pod(1), pod(2)];
    pods[0].load.set_models(vec![]);
    pods[1].load.set_models(vec!["base".into(), "m".into()]);
    pods[2].load.set_models(vec!["base".into(), "m2".into()]);
    let (_, seen) = plan(&scheduler(&["lora-affinity"], &[]), &server(pods), "", 0);
    assert_eq!(seen.totals.into_keys().collect::<Vec<_>>(), [1]);
}

#[test]
fn j1_lora_affinity_lets_a_pod_pass_whose_models_were_never_read() {
    let pods = vec![pod(0), pod(1)];
    pods[1].load.set_models(vec!["base".into()]);
    let (_, seen) = plan(&scheduler(&["lora-affinity"], &[]), &server(pods), "", 0);
    assert_eq!(seen.totals.into_keys().collect::<Vec<_>>(), [0]);
}
