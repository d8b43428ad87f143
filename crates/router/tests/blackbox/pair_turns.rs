//! Which pair is asked after one that failed, and what a prefill leg costs meanwhile.

use crate::pair::{Pairs, connector, in_flight, scores, with};
use crate::{COMPLETIONS, completion};
use e2e::{Gate, Pod, Script, until};
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;

#[tokio::test]
async fn j3_a_dead_prefill_pod_is_not_asked_again_while_there_is_a_sound_pair() {
    let [dead, d0, d1, d2, alive, d3] = Pod::several().await;
    let pods = [
        ("p0", &dead),
        ("d0", &d0),
        ("d0b", &d1),
        ("d0c", &d2),
        ("p1", &alive),
        ("d1", &d3),
    ];
    let twice = "  trafficPolicy:\n    retry: {attempts: 2, retryInterval: 1ms}\n";
    let router = with("vLLM", &pods, twice).start().await;
    dead.answers(Script::cut());
    let mut turn = 0;
    while dead.seen().len() < 4 {
        turn += 1;
        let body = completion(&format!("turn {turn}"));
        assert_eq!(router.post(COMPLETIONS, body).await.status, 200);
        assert!(dead.seen().len() <= turn, "once a request at most");
    }
    assert_eq!(d3.seen().len(), turn);
}

fn rooms(pod: &Pod) -> Vec<Option<u64>> {
    let room = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        body["bootstrap_room"].as_u64()
    };
    pod.seen().iter().map(|seen| room(&seen.body)).collect()
}

#[tokio::test]
async fn j3_the_only_pair_is_asked_anew_after_a_stale_connection() {
    for (engine, extra) in [("vLLM", connector("nixl")), ("SGLang", String::new())] {
        for prefill_fails in [true, false] {
            let what = format!("{engine}, prefill fails: {prefill_fails}");
            let [prefill, decode] = Pod::several().await;
            // A reading of metrics may borrow the kept connection.
            let setup = with(engine, &[("p0", &prefill), ("d0", &decode)], &extra);
            let router = setup.env("METRICS_SCRAPE_INTERVAL", "1h").start().await;
            for count in 1..3 {
                assert_eq!(router.post(COMPLETIONS, completion("x")).await.status, 200);
                prefill.request(count).await;
            }
            until("both are done", async || {
                let busy = in_flight(&router).await;
                busy.values().all(|count| *count == 0).then_some(())
            })
            .await;
            let (bad, other) = match prefill_fails {
                true => (&prefill, &decode),
                false => (&decode, &prefill),
            };
            if (engine, prefill_fails) == ("SGLang", true) {
                other.next(Script::hang());
            }
            bad.next(Script::cut());
            let id = [("x-request-id", "anew")];
            let answer = router.post_with(COMPLETIONS, &id, completion("y")).await;
            assert_eq!(answer.status, 200, "{what}");
            assert_eq!(
                router.logged("anew").await["upstream_attempts"],
                2,
                "{what}"
            );
            // From the prefill on, and in another room.
            prefill.request(4).await;
            let rooms = rooms(bad);
            assert_eq!(rooms.len(), 4, "{what}");
            assert!(
                engine == "vLLM" || rooms[2] != rooms[3],
                "{what}: {rooms:?}"
            );
            // A pod that always breaks off is asked twice, not more.
            bad.answers(Script::cut());
            if (engine, prefill_fails) == ("SGLang", true) {
                other.answers(Script::hang());
            }
            assert_eq!(router.post(COMPLETIONS, completion("z")).await.status, 503);
            assert!(bad.seen().len() <= 6, "{what}");
        }
    }
}

#[tokio::test]
async fn j3_a_prefill_answer_that_nobody_reads_may_be_long() {
    let long = format!(r#"{{"prompt_logprobs":"{}"}}"#, "x".repeat(9 << 20));
    for engine in ["vLLM", "SGLang"] {
        let [prefill, decode] = Pod::several().await;
        let router = with(engine, &[("p0", &prefill), ("d0", &decode)], "")
            .start()
            .await;
        prefill.answers(Script::json(200, &long));
        let body = completion("x");
        assert_eq!(
            router.post(COMPLETIONS, &body).await.status,
            200,
            "{engine}"
        );
        until("the prefill pod is recorded", async || {
            (scores(&router, &body).await["p0"] == 100).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn j3_a_prefill_ends_although_the_client_does_not_read() {
    let pairs = Pairs::start("SGLang", "").await;
    let first = pairs.favourite().await;
    let gate = Gate::closed();
    pairs.prefill[first].next(Script::json(200, "{}").behind(&gate));
    let (endless, written) = Script::endless();
    pairs.decode[first].next(endless);
    let mut client = pairs.router.connect().await;
    client
        .request("POST", COMPLETIONS, &[], Pairs::long())
        .await;
    client.head().await;
    let (mut last, mut same) = (0, 0);
    until("the decode pod is held back", async || {
        let now = written.load(Relaxed);
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        (same == 40).then_some(())
    })
    .await;
    let [p, d] = ["p", "d"].map(|role| format!("{role}{first}"));
    let busy = in_flight(&pairs.router).await;
    assert_eq!((busy[&p], busy[&d]), (1, 1));
    gate.open();
    until("the prefill pod is free", async || {
        (in_flight(&pairs.router).await[&p] == 0).then_some(())
    })
    .await;
    assert_eq!(in_flight(&pairs.router).await[&d], 1);
    drop(client);
    pairs.quiet().await;
}
