//! What each leg of a prefill/decode request is told, and what becomes of it.

use crate::pair::{Pairs, connector, endpoint, in_flight, with};
use crate::{CHAT, COMPLETIONS, completion};
use e2e::{Gate, H2, Pod, Script, event, until, usage_event};
use serde_json::{Value, json};

const BODY: &str = r#"{"model":"m", "seed":9007199254740993, "stream":true,"min_tokens":5 ,"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}"#;
const PREFILL_BODY: &str = r#"{"model":"m", "seed":9007199254740993,"min_tokens":1 ,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;

fn body(pod: &Pod) -> String {
    String::from_utf8(pod.only().body).unwrap()
}

/// One pair behind a router.
async fn one(engine: &str, extra: &str) -> (e2e::Router, Pod, Pod) {
    let [prefill, decode] = Pod::several().await;
    let router = with(engine, &[("p0", &prefill), ("d0", &decode)], extra)
        .start()
        .await;
    (router, prefill, decode)
}

#[tokio::test]
async fn j3_prefill_then_decode_with_everything_the_client_sent() {
    for extra in ["", &connector("http"), &connector("lmcache")] {
        let (router, prefill, decode) = one("vLLM", extra).await;
        decode.answers(Script::events(&[&event("Hi"), "data: [DONE]\n\n"]));
        let headers = [
            ("x-request-id", "one"),
            ("authorization", "Bearer secret"),
            ("accept-encoding", "gzip"),
        ];
        let path = format!("{CHAT}?a=b");
        let answer = router.post_with(&path, &headers, BODY).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.text(), event("Hi") + "data: [DONE]\n\n");
        assert_eq!(body(&prefill), PREFILL_BODY);
        assert_eq!(
            body(&decode),
            BODY.replace("]}", r#"],"stream_options":{"include_usage":true}}"#)
        );
        let (first, second) = (prefill.only(), decode.only());
        assert!(first.at < second.at && first.done);
        assert_eq!(first.line, format!("POST {path} HTTP/1.1"));
        assert_eq!(second.line, first.line);
        for seen in [first, second] {
            for (name, value) in &headers[..2] {
                assert_eq!(seen.headers.get(name), Some(*value));
            }
            // The usage event can be taken out of plain text only.
            assert_eq!(seen.headers.get("accept-encoding"), Some("identity"));
            let length = seen.body.len().to_string();
            assert_eq!(seen.headers.all("content-length"), [length.as_str()]);
        }
        let line = router.logged("one").await;
        assert_eq!(line["selected_pod"], "m:d0");
        assert_eq!(line["prefill_pod"], "m:p0");
        assert_eq!(line["upstream_attempts"], 1);
        let metrics = router.metrics().await;
        for phase in ["prefill", "decode"] {
            let labels = [("model", "m"), ("path", CHAT), ("status_code", "200")];
            let name = format!("kthena_router_request_{phase}_duration_seconds_count");
            assert_eq!(metrics.value(&name, &labels), Some(1.0), "{phase}");
        }
    }
}

#[tokio::test]
async fn j3_nixl_hands_over_what_the_prefill_pod_said_digit_by_digit() {
    const PARAMS: &str = r#"{"remote_block_ids":[[18446744073709551615,1.0]], "remote_engine_id":"é\u00e9","n":1E400}"#;
    for name in ["nixl", "mooncake"] {
        let (router, prefill, decode) = one("vLLM", &connector(name)).await;
        prefill.answers(Script::json(
            200,
            format!(r#"{{"id":"x","choices":[],"kv_transfer_params" : {PARAMS}}}"#),
        ));
        let sent = completion("hi");
        let headers = [("accept-encoding", "gzip")];
        assert_eq!(
            router.post_with(COMPLETIONS, &headers, &sent).await.status,
            200
        );
        let open = sent.strip_suffix('}').unwrap();
        assert_eq!(
            body(&prefill),
            format!(
                r#"{open},"max_tokens":1,"kv_transfer_params":{{"do_remote_decode":true,"do_remote_prefill":false}}}}"#
            )
        );
        assert_eq!(
            body(&decode),
            format!(r#"{open},"kv_transfer_params":{PARAMS}}}"#)
        );
        // The router reads the prefill pod's answer itself; the client reads the decode pod's.
        assert_eq!(prefill.only().headers.get("accept-encoding"), None);
        assert_eq!(decode.only().headers.get("accept-encoding"), Some("gzip"));
    }
}

#[tokio::test]
async fn j3_a_prefill_answer_without_params_hands_over_null() {
    let (router, prefill, decode) = one("vLLM", &connector("nixl")).await;
    prefill.answers(Script::json(200, e2e::chat_answer()));
    assert_eq!(router.post(COMPLETIONS, completion("hi")).await.status, 200);
    let sent: Value = serde_json::from_slice(&decode.only().body).unwrap();
    assert_eq!(sent.get("kv_transfer_params"), Some(&Value::Null));
    router
        .log
        .has("NIXL: missing 'kv_transfer_params' in prefill response")
        .await;
}

#[tokio::test]
async fn j3_sglang_asks_both_at_once_and_lets_them_meet() {
    let (router, prefill, decode) = one("SGLang", "").await;
    let gate = Gate::closed();
    prefill.answers(Script::json(200, "{}").behind(&gate));
    decode.answers(Script::json(200, e2e::chat_answer()).behind(&gate));
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], BODY).await;
    prefill.request(1).await;
    decode.request(1).await;
    let counts = in_flight(&router).await;
    assert_eq!((counts["p0"], counts["d0"]), (1, 1));
    gate.open();
    assert_eq!(client.answer().await.status, 200);
    let room = |pod: &Pod| {
        let body: Value = serde_json::from_slice(&pod.only().body).unwrap();
        body["bootstrap_room"].as_u64().unwrap()
    };
    let number = room(&prefill);
    assert!(number < 1 << 63, "{number}");
    assert_eq!(number, room(&decode));
    assert_eq!(
        body(&prefill),
        PREFILL_BODY.replace("]}", &format!(r#"],"bootstrap_room":{number}}}"#))
    );
    let usage = r#""stream_options":{"include_usage":true}"#;
    assert_eq!(
        body(&decode),
        BODY.replace(
            "]}",
            &format!(r#"],{usage},"bootstrap_host":"127.0.0.1","bootstrap_room":{number}}}"#)
        )
    );
}

#[tokio::test]
async fn j3_each_phase_is_in_flight_on_its_own_pod() {
    let (router, prefill, decode) = one("vLLM", "").await;
    let (first, second) = (Gate::closed(), Gate::closed());
    prefill.answers(Script::json(200, "{}").behind(&first));
    decode.answers(Script::json(200, e2e::chat_answer()).behind(&second));
    let mut client = router.connect().await;
    client.request("POST", CHAT, &[], BODY).await;
    prefill.request(1).await;
    let counts = in_flight(&router).await;
    assert_eq!((counts["p0"], counts["d0"]), (1, 0));
    first.open();
    decode.request(1).await;
    let counts = in_flight(&router).await;
    assert_eq!((counts["p0"], counts["d0"]), (0, 1));
    second.open();
    client.answer().await;
    until("nothing is in flight", async || {
        in_flight(&router)
            .await
            .values()
            .all(|n| *n == 0)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn d2_both_pods_are_recorded_and_asked_again() {
    for engine in ["vLLM", "SGLang"] {
        let pairs = Pairs::start(engine, "").await;
        let first = pairs.favourite().await;
        let entries = pairs.router.metrics().await;
        assert_eq!(
            entries.value("kthena_router_prefix_cache_entries", &[]),
            Some(16.0),
            "8 blocks at two pods"
        );
        let scores = pairs.scores(&Pairs::long()).await;
        let other = 1 - first;
        assert_eq!(scores[&format!("p{first}")], 50, "{engine}: {scores:?}");
        assert_eq!(scores[&format!("d{first}")], 50);
        assert_eq!(
            scores[&format!("p{other}")] + scores[&format!("d{other}")],
            0
        );
        for count in 2..6 {
            assert_eq!(
                pairs.router.post(COMPLETIONS, Pairs::long()).await.status,
                200
            );
            // SGLang's prefill pod may hear of it last.
            pairs.prefill[first].request(count).await;
            assert_eq!(pairs.decode[first].seen().len(), count, "{engine}");
        }
    }
}

#[tokio::test]
async fn j3_a_stream_passes_as_it_comes_and_its_usage_counts_once() {
    for engine in ["vLLM", "SGLang"] {
        let (router, _prefill, decode) = one(engine, "").await;
        let (script, stream) = Script::stream();
        decode.next(script);
        let mut client = router.connect().await;
        let id = [("x-request-id", "stream")];
        client.request("POST", CHAT, &id, BODY).await;
        let counted = event("a").replace(
            "}\n\n",
            r#","usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#,
        ) + "\n\n";
        stream.send(&counted);
        assert_eq!(client.head().await.status, 200);
        client.expect(&counted).await;
        stream.send(event("b"));
        client.expect(event("b")).await;
        stream.send(usage_event());
        stream.send("data: [DONE]\n\n");
        stream.finish();
        let (rest, end) = client.rest().await;
        assert_eq!(String::from_utf8(rest).unwrap(), "data: [DONE]\n\n");
        assert_eq!(end, e2e::End::Whole);
        let line = router.logged("stream").await;
        assert_eq!(line["output_tokens"], 3, "{engine}: {line}");
    }
}

#[tokio::test]
async fn c8_explain_shows_both_passes_and_pairs() {
    let pairs = Pairs::start("vLLM", "").await;
    let plan = pairs.router.explain(COMPLETIONS, completion("hi")).await;
    let roles: Vec<_> = plan["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (endpoint(&c["pod"]), c["role"].as_str().unwrap().to_owned()))
        .collect();
    let want = [
        ("d0", "decode"),
        ("d1", "decode"),
        ("p0", "prefill"),
        ("p1", "prefill"),
    ];
    assert_eq!(
        roles,
        want.map(|(pod, role)| (pod.to_owned(), role.to_owned()))
    );
    let mut attempts = plan["attempts"].as_array().unwrap().clone();
    attempts.sort_by_key(Value::to_string);
    let pair =
        |n| json!({"prefill": format!("default/m:p{n}"), "decode": format!("default/m:d{n}")});
    assert_eq!(attempts, [pair(0), pair(1)]);
    assert_eq!(pairs.asked(), [0; 4]);
    let server = pairs
        .router
        .debug("namespaces/default/modelservers/m")
        .await;
    assert_eq!(
        server["decodePods"],
        json!(["default/m:d0", "default/m:d1"])
    );
    assert_eq!(
        server["prefillPods"],
        json!(["default/m:p0", "default/m:p1"])
    );
}

#[tokio::test]
async fn j3_without_a_pair_the_error_says_what_is_missing() {
    let [a, b] = Pod::several().await;
    for (pods, message) in [
        ([("p0", &a), ("p1", &b)], "no decode pod found"),
        (
            [("p0", &a), ("d1", &b)],
            "no valid prefill-decode pod pairs found",
        ),
    ] {
        let router = with("vLLM", &pods, "").start().await;
        let id = [("x-request-id", "none")];
        let answer = router.post_with(CHAT, &id, BODY).await;
        let said = format!("can't schedule to target pod: {message}");
        assert_eq!(answer.error(), (503, "scheduling".into(), said));
        assert_eq!(router.logged("none").await["error"]["type"], "scheduling");
        let labels = [("error_type", "request_failed")];
        let metrics = router.metrics().await;
        assert_eq!(
            metrics.value("kthena_router_requests_total", &labels),
            Some(1.0)
        );
    }
    assert!(a.seen().is_empty() && b.seen().is_empty());
}

#[tokio::test]
async fn a_form_goes_to_the_decode_pod_alone() {
    let (router, prefill, decode) = one("vLLM", "").await;
    let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let kind = [("content-type", "multipart/form-data; boundary=b")];
    let answer = router
        .post_with("/v1/audio/transcriptions", &kind, form)
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(body(&decode), form);
    assert!(prefill.seen().is_empty());
}

#[tokio::test]
async fn j3_a_compressed_body_reaches_both_pods_as_it_reads() {
    use std::io::Write as _;
    let (router, prefill, decode) = one("vLLM", "").await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(BODY.as_bytes()).unwrap();
    let headers = [("content-encoding", "gzip")];
    let answer = router
        .post_with(CHAT, &headers, packer.finish().unwrap())
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(body(&prefill), PREFILL_BODY);
    assert!(body(&decode).starts_with(BODY.trim_end_matches('}')));
    for pod in [&prefill, &decode] {
        assert_eq!(pod.only().headers.get("content-encoding"), None);
    }
}

#[tokio::test]
async fn j3_labels_that_change_move_a_pod_at_once() {
    let [a, b, c] = Pod::several().await;
    let router = with("vLLM", &[("p0", &a), ("d0", &b), ("p1", &c)], "")
        .start()
        .await;
    assert_eq!(router.post(CHAT, BODY).await.status, 200);
    let manifest = |pods: &[(&str, &Pod)]| {
        let at: Vec<_> = pods
            .iter()
            .map(|(n, p)| (*n, "127.0.0.1", p.port()))
            .collect();
        crate::pair::manifest("vLLM", &at, "")
    };
    router.write("server.yaml", &manifest(&[("d1", &b), ("p1", &c)]));
    until("the change is in force", async || {
        let plan = router.explain(CHAT, BODY).await;
        (plan["attempts"][0]["prefill"] == "default/m:p1").then_some(())
    })
    .await;
    assert_eq!(router.post(CHAT, BODY).await.status, 200);
    assert_eq!([&a, &b, &c].map(|pod| pod.seen().len()), [1, 2, 1]);
}

#[tokio::test]
async fn j3_over_http2_too() {
    let (router, prefill, decode) = one("SGLang", "").await;
    let answer = H2::connect(router.port).await.post(CHAT, BODY).await;
    assert_eq!((answer.status, answer.text()), (200, e2e::chat_answer()));
    prefill.request(1).await;
    decode.request(1).await;
}
