//! `kthena-router doctor` before routers under traffic: each scenario with its symptom, and without.

use crate::doctor::{finds, is_content};
use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Gauges, Pod, Router, scheduler};

async fn send(router: &Router, prompts: impl IntoIterator<Item = String>) {
    for prompt in prompts {
        let answer = router.post(COMPLETIONS, completion(&prompt)).await;
        assert_eq!(answer.status, 200);
    }
}

#[tokio::test]
async fn i5_doctor_names_the_byte_at_which_prompts_differ() {
    let pod = Pod::start().await;
    let shared = text(1, 1280);
    let router = setup().pods(&[&pod]).start().await;
    send(
        &router,
        (10..30).map(|n| format!("2026-11-30T06:00:{n} {shared}")),
    )
    .await;
    let said = finds(&router, "always-0-diverging").await;
    // The digit of the seconds that no other prompt shares.
    assert!(said.contains("differ from byte 18 on"), "{said}");
    let router = setup().pods(&[&pod]).start().await;
    send(
        &router,
        (10..30).map(|n| format!("{shared} 2026-11-30T06:00:{n}")),
    )
    .await;
    is_content(&router).await;
}

#[tokio::test]
async fn i4_doctor_finds_a_time_behind_the_first_block() {
    let pod = Pod::start().await;
    let before = "You are a helpful assistant of the support team. ".repeat(2);
    let shared = text(1, 1280);
    let router = setup().pods(&[&pod]).start().await;
    let dated = (10..30).map(|n| format!("{before}2026-11-30T06:00:{n} {shared}"));
    send(&router, dated).await;
    let said = finds(&router, "low-diverging").await;
    assert!(said.contains("differ from byte 116 on"), "{said}");
    // Without the time, prompts of the same length.
    let router = setup().pods(&[&pod]).start().await;
    let moved = (10..30).map(|n| format!("{before}{shared} 2026-11-30T06:00:{n}"));
    send(&router, moved).await;
    is_content(&router).await;
}

#[tokio::test]
async fn i5_doctor_does_not_blame_a_date_where_prompts_have_nothing_in_common() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{maxHashCacheSize: 100}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    send(&router, (1..40).map(|n| text(n, 640))).await;
    is_content(&router).await;
}

#[tokio::test]
async fn i5_the_size_that_doctor_names_holds_what_is_asked_for() {
    let pod = Pod::start().await;
    // 20 prompts of 10 blocks, again and again, and room for half of them.
    let mut size = 100;
    for too_small in [true, false] {
        let config = scheduler(
            &[("prefix-cache", 1)],
            &format!("{{maxHashCacheSize: {size}}}"),
        );
        let router = setup().pods(&[&pod]).config(&config).start().await;
        send(&router, (0..100).map(|n| text(n % 20 + 1, 640))).await;
        if !too_small {
            is_content(&router).await;
            break;
        }
        let said = finds(&router, "evictions").await;
        let (_, advice) = said.split_once("Set maxHashCacheSize: ").unwrap();
        size = advice.split_once(' ').unwrap().0.parse().unwrap();
        assert!((200..400).contains(&size), "{said}");
    }
}

#[tokio::test]
async fn i5_doctor_says_that_requests_fail() {
    let pod = Pod::start().await;
    pod.answers(e2e::Script::json(500, r#"{"error":"broken"}"#));
    let router = setup().pods(&[&pod]).start().await;
    for _ in 0..12 {
        router.post(COMPLETIONS, completion(&text(1, 640))).await;
    }
    let said = finds(&router, "always-0-failing").await;
    assert!(said.contains("12 of the latest 12 requests"), "{said}");
}

#[tokio::test]
async fn i5_doctor_names_the_blocks_that_reach_past_the_shared_part() {
    let pods: [Pod; 2] = Pod::several().await;
    let shared = text(1, 960);
    for (blocks, too_short) in [(8, true), (40, false)] {
        let config = scheduler(
            &[("prefix-cache", 1)],
            &format!("{{maxBlocksToMatch: {blocks}}}"),
        );
        // One pod after the other, so that each holds the shared part.
        let router = setup().pods(&[&pods[0]]).config(&config).start().await;
        send(&router, [shared.clone() + &text(2, 960)]).await;
        router.set_pods(&[&pods[0], &pods[1]]).await;
        let full = Gauges {
            waiting: 100,
            ..Gauges::default()
        };
        pods[0].shows(Some(full)).await;
        send(&router, [shared.clone() + &text(3, 960)]).await;
        pods[0].shows(Some(Gauges::default())).await;
        // Ties are drawn: so many that they do not fall to one pod by chance.
        send(&router, (10..110).map(|n| shared.clone() + &text(n, 960))).await;
        match too_short {
            true => {
                let said = finds(&router, "coverage").await;
                assert!(said.contains("maxBlocksToMatch: 32 (from 8)"), "{said}");
            }
            false => is_content(&router).await,
        }
    }
}

#[tokio::test]
async fn i5_doctor_names_the_plugin_that_outvotes_the_prefix() {
    let pods: [Pod; 2] = Pod::several().await;
    let prompts = || (1..21).map(|n| text(n, 640));
    for (weight, outvoted) in [(1, true), (5, false)] {
        let config = scheduler(&[("prefix-cache", weight), ("gpu-usage", 2)], "{}");
        let router = setup().pods(&[&pods[0]]).config(&config).start().await;
        send(&router, prompts()).await;
        router.set_pods(&[&pods[0], &pods[1]]).await;
        let busy = Gauges {
            usage: 0.9,
            ..Gauges::default()
        };
        pods[0].shows(Some(busy)).await;
        send(&router, prompts()).await;
        match outvoted {
            true => {
                let said = finds(&router, "outvoted").await;
                assert!(
                    said.contains("gpu-usage outvotes prefix-cache for m"),
                    "{said}"
                );
                assert!(said.contains("from 1 to 2"), "{said}");
            }
            false => is_content(&router).await,
        }
        pods[0].preset(Some(Gauges::default()));
    }
}
