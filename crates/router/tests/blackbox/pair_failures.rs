//! Prefill/decode pairs of which one leg fails, in every way and at every moment.

use crate::pair::{Pairs, connector, with};
use crate::{COMPLETIONS, completion, text};
use e2e::{Client, End, Gate, Pod, Script, event, until};
use serde_json::Value;

const ENGINES: [&str; 2] = ["vLLM", "SGLang"];
const REFUSAL: &str = r#"{"error":{"message":"prompt is too long","code":400}}"#;
const POLICY: &str =
    "  trafficPolicy:\n    timeout: 1s\n    retry: {attempts: 5, retryInterval: 1ms}\n";

/// Ways of a pod to fail before the first byte of its body.
fn failures() -> Vec<Script> {
    vec![
        Script::json(500, "{}"),
        Script::json(429, "{}"),
        Script::cut(),
        Script::reset(),
        Script::raw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").then_fin(),
        Script::raw("this is not HTTP\r\n\r\n").then_fin(),
    ]
}

async fn begun(pairs: &Pairs, id: &str) -> Client {
    let mut client = pairs.router.connect().await;
    let headers = [("x-request-id", id)];
    client
        .request("POST", COMPLETIONS, &headers, Pairs::long())
        .await;
    client
}

fn room(pod: &Pod) -> u64 {
    let body: Value = serde_json::from_slice(&pod.seen().last().unwrap().body).unwrap();
    body["bootstrap_room"].as_u64().unwrap()
}

#[tokio::test]
async fn d4_when_a_leg_fails_the_next_pair_is_tried_and_that_one_is_recorded() {
    for engine in ENGINES {
        for prefill_fails in [true, false] {
            let pairs = Pairs::start(engine, "").await;
            let mut body = completion(&text(1, 512));
            for (number, failure) in failures().into_iter().enumerate() {
                // A prompt of its own for each way to fail, after one that makes a pair the first choice.
                let start = text(100 + number as u64, 512);
                body = completion(&start);
                let before = pairs.asked();
                assert_eq!(pairs.router.post(COMPLETIONS, &body).await.status, 200);
                let first = usize::from(pairs.asked()[2] == before[2]);
                let (p, d) = (format!("p{first}"), format!("d{first}"));
                until("both are recorded", async || {
                    let scores = pairs.scores(&body).await;
                    (scores[&p] == 100 && scores[&d] == 100).then_some(())
                })
                .await;
                let (bad, waits) = match prefill_fails {
                    true => (&pairs.prefill[first], &pairs.decode[first]),
                    false => (&pairs.decode[first], &pairs.prefill[first]),
                };
                let sent = bad.seen().len();
                bad.answers(failure.clone());
                if engine == "SGLang" {
                    waits.answers(Script::hang());
                }
                let count = waits.seen().len();
                let long = completion(&(start + &text(2, 512)));
                let answer = pairs.router.post(COMPLETIONS, &long).await;
                let what = format!("{engine}, prefill fails: {prefill_fails}, {failure:?}");
                assert_eq!(
                    (answer.status, answer.text()),
                    (200, e2e::chat_answer()),
                    "{what}"
                );
                assert_eq!(bad.seen().len(), sent + 1, "{what}: sent once");
                if engine == "SGLang" && waits.seen().len() > count {
                    waits.left(count + 1).await;
                }
                let other = 1 - first;
                until("the other pair is recorded", async || {
                    let scores = pairs.scores(&long).await;
                    let served = [format!("p{other}"), format!("d{other}")];
                    served.iter().all(|pod| scores[pod] == 100).then_some(())
                })
                .await;
                let scores = pairs.scores(&long).await;
                assert_eq!((scores[&p], scores[&d]), (50, 50), "{what}: not recorded");
                pairs.quiet().await;
                for pod in [bad, waits] {
                    pod.answers(Script::json(200, e2e::chat_answer()));
                }
            }
            let metrics = pairs.router.metrics().await;
            let phase = if prefill_fails { "prefill" } else { "decode" };
            let name = format!("kthena_router_request_{phase}_duration_seconds_count");
            let failed = metrics.count(&name, &[("status_code", "500")]);
            assert_eq!(
                failed,
                failures().len() as f64,
                "{engine} {phase} of {body}"
            );
        }
    }
}

#[tokio::test]
async fn j3_sglang_gives_each_attempt_a_new_room() {
    let pairs = Pairs::start("SGLang", "").await;
    let first = pairs.favourite().await;
    pairs.decode[first].next(Script::json(503, "{}"));
    assert_eq!(
        pairs.router.post(COMPLETIONS, Pairs::long()).await.status,
        200
    );
    let rooms = [&pairs.decode[first], &pairs.decode[1 - first]].map(room);
    assert_ne!(rooms[0], rooms[1]);
    pairs.prefill[1 - first].request(1).await;
    assert_eq!(rooms[1], room(&pairs.prefill[1 - first]));
}

#[tokio::test]
async fn j3_a_client_error_of_either_leg_is_the_clients_at_once() {
    for (engine, extra) in [
        ("vLLM", ""),
        ("vLLM", "  kvConnector: {type: nixl}\n"),
        ("SGLang", ""),
    ] {
        for prefill_refuses in [true, false] {
            let pairs = Pairs::start(engine, extra).await;
            let sides = [&pairs.prefill, &pairs.decode];
            let [refuses, other] = if prefill_refuses {
                sides
            } else {
                [sides[1], sides[0]]
            };
            let headers = [("content-type", "application/json"), ("x-why", "yours")];
            refuses
                .iter()
                .for_each(|pod| pod.answers(Script::reply(400, &headers, REFUSAL)));
            if engine == "SGLang" {
                other.iter().for_each(|pod| pod.answers(Script::hang()));
            }
            let id = [("x-request-id", "no")];
            let answer = pairs
                .router
                .post_with(COMPLETIONS, &id, Pairs::long())
                .await;
            let what = format!("{engine} {extra}, prefill: {prefill_refuses}");
            assert_eq!(
                (answer.status, answer.text().as_str()),
                (400, REFUSAL),
                "{what}"
            );
            assert_eq!(answer.headers.get("x-why"), Some("yours"));
            assert_eq!(
                refuses.iter().map(|p| p.seen().len()).sum::<usize>(),
                1,
                "{what}"
            );
            for pod in other
                .iter()
                .filter(|p| engine == "SGLang" && !p.seen().is_empty())
            {
                pod.left(1).await;
            }
            if engine == "vLLM" && prefill_refuses {
                assert_eq!(pairs.asked()[2..], [0, 0], "no decode without a prefill");
            }
            let line = pairs.router.logged("no").await;
            assert_eq!(line["upstream_attempts"], 1);
            assert_eq!(line["error_origin"], "upstream");
            let metrics = pairs.router.metrics().await;
            let entries = metrics.value("kthena_router_prefix_cache_entries", &[]);
            assert_eq!(entries, Some(0.0), "{what}");
            pairs.quiet().await;
        }
    }
}

#[tokio::test]
async fn d3_after_the_first_byte_no_pair_is_tried_and_nothing_is_recorded() {
    for engine in ENGINES {
        for broken in [false, true] {
            let pairs = Pairs::start(engine, "").await;
            let first = pairs.favourite().await;
            let (script, stream) = Script::stream();
            pairs.decode[first].next(script);
            let mut client = begun(&pairs, "cut").await;
            stream.send(event("first"));
            assert_eq!(client.head().await.status, 200);
            client.expect(event("first")).await;
            if broken {
                stream.rst();
            } else {
                stream.fin();
            }
            assert_eq!(client.rest().await, (Vec::new(), End::Cut), "{engine}");
            let line = pairs.router.logged("cut").await;
            assert_eq!(line["error"]["type"], "proxy");
            assert_eq!(pairs.decode[1 - first].seen().len(), 0);
            pairs.quiet().await;
            let scores = pairs.scores(&Pairs::long()).await;
            assert!(
                scores.values().all(|score| *score <= 50),
                "{engine}: {scores:?}"
            );
        }
    }
}

#[tokio::test]
async fn d5_a_decode_that_is_aborted_records_neither_pod() {
    for engine in ENGINES {
        let pairs = Pairs::start(engine, "").await;
        let first = pairs.favourite().await;
        let aborted = e2e::chat_answer().replace("\"stop\"", "\"abort\"");
        pairs.decode[first].next(Script::json(200, &aborted));
        let answer = pairs.router.post(COMPLETIONS, Pairs::long()).await;
        assert_eq!((answer.status, answer.text()), (200, aborted));
        pairs.quiet().await;
        let scores = pairs.scores(&Pairs::long()).await;
        let of = |kind: &str| scores[&format!("{kind}{first}")];
        assert_eq!((of("p"), of("d")), (50, 50), "{engine}");
    }
}

#[tokio::test]
async fn d5_a_client_that_leaves_takes_both_legs_with_it() {
    // In the prefill leg of a sequence: the decode pod is never asked.
    let pairs = Pairs::start("vLLM", "").await;
    let first = pairs.favourite().await;
    pairs.prefill[first].next(Script::hang());
    let client = begun(&pairs, "prefill").await;
    pairs.prefill[first].request(2).await;
    drop(client);
    pairs.prefill[first].left(2).await;
    assert_eq!(pairs.router.logged("prefill").await["status_code"], 499);
    pairs.quiet().await;
    assert_eq!(pairs.decode[first].seen().len(), 1);

    // While both are asked, and in the middle of the stream while the prefill is still under way.
    for streams in [false, true] {
        let pairs = Pairs::start("SGLang", "").await;
        let first = pairs.favourite().await;
        let (prefill, decode) = (&pairs.prefill[first], &pairs.decode[first]);
        prefill.next(Script::hang());
        let (script, stream) = Script::stream();
        decode.next(if streams { script } else { Script::hang() });
        let mut client = begun(&pairs, "both").await;
        prefill.request(2).await;
        decode.request(2).await;
        if streams {
            stream.send(event("a"));
            client.head().await;
            client.expect(event("a")).await;
        }
        drop(client);
        prefill.left(2).await;
        decode.left(2).await;
        let line = pairs.router.logged("both").await;
        assert_eq!(line["error"]["type"], "client_disconnected");
        pairs.quiet().await;
        let scores = pairs.scores(&Pairs::long()).await;
        assert!(scores.values().all(|score| *score <= 50), "{scores:?}");
    }
}

#[tokio::test]
async fn j3_the_timeout_bounds_the_prefill_leg_and_the_wait_for_decodes_headers() {
    for engine in ENGINES {
        for prefill_hangs in [true, false] {
            let pairs = Pairs::start(engine, POLICY).await;
            let first = pairs.favourite().await;
            let slow = match prefill_hangs {
                true => &pairs.prefill[first],
                false => &pairs.decode[first],
            };
            // A head alone is not enough of a prefill.
            slow.next(match prefill_hangs {
                true => Script::raw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").then_hang(),
                false => Script::hang(),
            });
            if engine == "SGLang" && prefill_hangs {
                pairs.decode[first].next(Script::hang());
            }
            let answer = pairs.router.post(COMPLETIONS, Pairs::long()).await;
            assert_eq!(answer.status, 200, "{engine} {prefill_hangs}");
            slow.left(2).await;
            let said = match prefill_hangs {
                true => "not done within the timeout",
                false => "no response headers within the timeout",
            };
            if engine == "vLLM" || !prefill_hangs {
                pairs.router.log.has(said).await;
            }
            pairs.quiet().await;
        }
    }
}

#[tokio::test]
async fn j3_when_no_pair_answers_the_router_says_503() {
    for engine in ENGINES {
        let pairs = Pairs::start(engine, "").await;
        pairs.prefill.iter().for_each(|p| p.answers(Script::cut()));
        if engine == "SGLang" {
            // It would wait for the prefill.
            pairs.decode.iter().for_each(|p| p.answers(Script::hang()));
        }
        let id = [("x-request-id", "none")];
        let answer = pairs
            .router
            .post_with(COMPLETIONS, &id, completion("x"))
            .await;
        let said = "all prefill/decode attempts failed".to_owned();
        assert_eq!(answer.error(), (503, "proxy".into(), said));
        let line = pairs.router.logged("none").await;
        assert_eq!(line["upstream_attempts"], 2);
        let said = line["error"]["message"].as_str().unwrap().to_owned();
        assert!(said.contains("prefill on default/m:p"), "{said}");
        // An engine that answered counts more than one that did not.
        pairs.prefill[0].answers(Script::json(429, "{\"busy\":true}"));
        let answer = pairs.router.post(COMPLETIONS, completion("x")).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (429, "{\"busy\":true}")
        );
    }
}

#[tokio::test]
async fn j3_another_prefill_pod_of_the_group_stands_in_for_a_dead_one() {
    let [dead, alive, d0, d1] = Pod::several().await;
    let pods = [("p0", &dead), ("p0b", &alive), ("d0", &d0), ("d0b", &d1)];
    let router = with("vLLM", &pods, "").start().await;
    dead.answers(Script::cut());
    // A prompt of its own each time, or the pods that served the first would get all others.
    let mut turn = 0;
    while dead.seen().is_empty() {
        turn += 1;
        let body = completion(&format!("turn {turn}"));
        assert_eq!(router.post(COMPLETIONS, body).await.status, 200);
    }
    assert!(!alive.seen().is_empty());
}

#[tokio::test]
async fn j3_one_decode_pod_is_asked_again_with_another_prefill_pod() {
    let [dead, alive, decode] = Pod::several().await;
    let pods = [("p0", &dead), ("p0b", &alive), ("d0", &decode)];
    let router = with("vLLM", &pods, "").start().await;
    dead.answers(Script::cut());
    let mut turn = 0;
    while dead.seen().len() < 3 {
        turn += 1;
        let body = completion(&format!("turn {turn}"));
        assert_eq!(router.post(COMPLETIONS, body).await.status, 200);
    }
    assert_eq!(decode.seen().len(), turn, "each request has one decode");
}

#[tokio::test]
async fn j3_a_leg_on_a_kept_connection_is_sent_once() {
    for (engine, extra) in [("vLLM", connector("nixl")), ("SGLang", String::new())] {
        for prefill_fails in [true, false] {
            let extra = extra.clone() + "  trafficPolicy:\n    retry: {attempts: 1}\n";
            let pairs = Pairs::start(engine, &extra).await;
            let first = pairs.favourite().await;
            let (bad, other) = match prefill_fails {
                true => (&pairs.prefill[first], &pairs.decode[first]),
                false => (&pairs.decode[first], &pairs.prefill[first]),
            };
            if engine == "SGLang" {
                other.next(Script::hang());
            }
            bad.next(Script::cut());
            let what = format!("{engine}, prefill fails: {prefill_fails}");
            let answer = pairs.router.post(COMPLETIONS, Pairs::long()).await;
            assert_eq!(answer.status, 503, "{what}");
            assert_eq!(bad.seen().len(), 2, "{what}: the favourite's, and this");
            pairs.quiet().await;
        }
    }
}

#[tokio::test]
async fn j3_an_answer_that_is_no_prefills_fails_the_attempt() {
    let pairs = Pairs::start("vLLM", &connector("nixl")).await;
    let first = pairs.favourite().await;
    pairs.prefill[first].next(Script::json(200, "[1]"));
    assert_eq!(
        pairs.router.post(COMPLETIONS, Pairs::long()).await.status,
        200
    );
    pairs
        .router
        .log
        .has("the prefill answer is not a JSON object")
        .await;
    assert_eq!(pairs.decode[first].seen().len(), 1);
    // One without end is not read to its end.
    let (endless, _) = Script::endless();
    pairs.prefill[1 - first].next(endless);
    assert_eq!(
        pairs.router.post(COMPLETIONS, Pairs::long()).await.status,
        200
    );
    pairs.router.log.has("longer than 8 MiB").await;
    pairs.quiet().await;
}

#[tokio::test]
async fn j3_retry_attempts_caps_the_number_of_pairs() {
    let policy = "  trafficPolicy:\n    retry: {attempts: 1}\n";
    let pairs = Pairs::start("SGLang", policy).await;
    pairs
        .decode
        .iter()
        .for_each(|p| p.answers(Script::json(503, "{}")));
    assert_eq!(
        pairs.router.post(COMPLETIONS, completion("x")).await.status,
        503
    );
    assert_eq!(pairs.asked()[2..].iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn d2_a_prefill_that_answers_after_its_decode_is_recorded_then() {
    let pairs = Pairs::start("SGLang", "").await;
    let first = pairs.favourite().await;
    let gate = Gate::closed();
    pairs.prefill[first].next(Script::json(200, "{}").behind(&gate));
    let answer = pairs.router.post(COMPLETIONS, Pairs::long()).await;
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    let (p, d) = (format!("p{first}"), format!("d{first}"));
    until("the decode pod is recorded", async || {
        let scores = pairs.scores(&Pairs::long()).await;
        (scores[&d] == 100).then_some(())
    })
    .await;
    assert_eq!(pairs.scores(&Pairs::long()).await[&p], 50);
    gate.open();
    until("the prefill pod is recorded", async || {
        let scores = pairs.scores(&Pairs::long()).await;
        (scores[&p] == 100).then_some(())
    })
    .await;
    pairs.quiet().await;
}

#[tokio::test]
async fn d3_a_prefill_that_fails_while_decode_streams_is_not_recorded() {
    let pairs = Pairs::start("SGLang", "").await;
    let first = pairs.favourite().await;
    let gate = Gate::closed();
    pairs.prefill[first].next(Script::json(500, "{}").behind(&gate));
    let (script, stream) = Script::stream();
    pairs.decode[first].next(script);
    let mut client = begun(&pairs, "late").await;
    stream.send(event("a"));
    assert_eq!(client.head().await.status, 200);
    client.expect(event("a")).await;
    gate.open();
    pairs
        .router
        .log
        .has("prefill failed while decode was answering")
        .await;
    stream.send(event("b"));
    stream.finish();
    let (body, end) = client.rest().await;
    assert_eq!(
        (String::from_utf8(body).unwrap(), end),
        (event("b"), End::Whole)
    );
    let (p, d) = (format!("p{first}"), format!("d{first}"));
    until("the decode pod is recorded", async || {
        let scores = pairs.scores(&Pairs::long()).await;
        (scores[&d] == 100).then_some(())
    })
    .await;
    assert_eq!(pairs.scores(&Pairs::long()).await[&p], 50);
    assert_eq!(pairs.asked().iter().sum::<usize>(), 4, "no other pair");
    pairs.quiet().await;
}
