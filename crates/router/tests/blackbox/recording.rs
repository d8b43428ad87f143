//! `--record-requests`: the requests that were served, one JSON line each.

use crate::{CHAT, COMPLETIONS, completion, setup};
use e2e::{Pod, Router, Script, Setup, until};
use flate2::{Compression, read::GzEncoder};
use serde_json::{Value, json};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

const FILE: &str = "requests.jsonl";

fn recording(pod: &Pod, further: &[&str]) -> Setup {
    let flags = [&["--record-requests", FILE], further].concat();
    setup().pods(&[pod]).flags(&flags)
}

/// Ends the router and reads its recording.
async fn lines(mut router: Router) -> Vec<Value> {
    router.terminate();
    assert_eq!(router.exit_code().await, Some(0));
    let text = std::fs::read_to_string(router.dir().join(FILE)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_request_is_recorded_as_it_came() {
    let pod = Pod::start().await;
    let router = recording(&pod, &[]).start().await;
    let body = "{ \"b\":1.50,\n  \"model\":\"m\",\r\n\"prompt\":\"a\\nb\\u00e9\" }";
    let secret = [
        ("authorization", "Bearer secret-token"),
        ("x-api-key", "secret-key"),
    ];
    router
        .post_with("/v1/completions?x=secret", &secret, body)
        .await;
    let file = router.dir().join(FILE);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let router = router.restart().await;
    let text = std::fs::read_to_string(&file).unwrap();
    let (at, rest) = text.split_once(',').unwrap();
    let at: f64 = at.strip_prefix("{\"at\":").unwrap().parse().unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!((now.as_secs_f64() - at).abs() < 60.0, "{at}");
    assert_eq!(
        rest,
        "\"path\":\"/v1/completions\",\"prompt_tokens\":9,\"output_tokens\":3,\"body\":{ \"b\":1.50,   \"model\":\"m\",  \
         \"prompt\":\"a\\nb\\u00e9\" }}\n"
    );
    router.post(COMPLETIONS, completion("second")).await;
    let lines = lines(router).await;
    assert_eq!(lines.len(), 2, "appended to");
    assert_eq!(lines[1]["body"]["prompt"], "second");
}

#[tokio::test]
async fn what_came_compressed_is_recorded_decoded() {
    let pod = Pod::start().await;
    let router = recording(&pod, &[]).start().await;
    let mut packed = Vec::new();
    let body = completion("packed");
    GzEncoder::new(body.as_bytes(), Compression::best())
        .read_to_end(&mut packed)
        .unwrap();
    router
        .post_with(COMPLETIONS, &[("content-encoding", "gzip")], &packed)
        .await;
    let lines = lines(router).await;
    assert_eq!(
        lines[0]["body"],
        serde_json::from_str::<Value>(&body).unwrap()
    );
}

#[tokio::test]
async fn only_json_that_was_served_is_recorded() {
    let pod = Pod::start().await;
    let router = recording(&pod, &[]).start().await;
    pod.next(Script::json(422, "{}"));
    router.post(CHAT, r#"{"model":"m","no":1}"#).await;
    router.post(CHAT, r#"{"model":"unknown"}"#).await;
    router.post(CHAT, "nonsense").await;
    pod.next(Script::events(&[
        "data: {\"error\":{\"message\":\"x\"}}\n\n",
    ]));
    router
        .post(CHAT, r#"{"model":"m","stream":true,"no":2}"#)
        .await;
    let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let multipart = [("content-type", "multipart/form-data; boundary=b")];
    let answer = router
        .post_with("/v1/audio/transcriptions", &multipart, form)
        .await;
    assert_eq!(answer.status, 200);
    pod.next(Script::reply(200, &[("content-type", "audio/wav")], "RIFF"));
    router
        .post("/v1/audio/speech", r#"{"model":"m","input":"x"}"#)
        .await;
    until("the last one is recorded", async || {
        let text = std::fs::read_to_string(router.dir().join(FILE)).ok()?;
        text.ends_with('\n').then_some(())
    })
    .await;
    let lost = "kthena_router_record_lost_requests_total";
    assert_eq!(router.metrics().await.count(lost, &[]), 0.0, "no loss");
    let lines = lines(router).await;
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!(line["path"], "/v1/audio/speech");
    assert_eq!(
        (&line["prompt_tokens"], &line["output_tokens"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn a_redacted_line_does_not_tell_a_path_that_may_hold_names() {
    let pod = Pod::start().await;
    let router = recording(&pod, &["--record-redact"]).start().await;
    for path in ["/v1/threads/private/messages", COMPLETIONS] {
        router.post(path, completion("x")).await;
    }
    let lines = lines(router).await;
    assert_eq!(
        (&lines[0]["path"], &lines[1]["path"]),
        (&json!("other"), &json!(COMPLETIONS))
    );
}

#[tokio::test]
async fn redacted_lines_hold_lengths_and_keyed_hashes_only() {
    let pod = Pod::start().await;
    let router = recording(&pod, &["--record-redact"]).start().await;
    let shared = "private ".repeat(16);
    for prompt in [
        shared.clone() + "one",
        shared.clone() + "two",
        "private".into(),
    ] {
        router.post(COMPLETIONS, completion(&prompt)).await;
    }
    let first = lines(router.restart().await).await;
    assert_eq!(first.len(), 3);
    assert!(!json!(first).to_string().contains("private"));
    let of = |n: usize| &first[n]["redacted"];
    let keys: Vec<_> = first[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["at", "path", "prompt_tokens", "output_tokens", "redacted"]
    );
    assert_eq!(
        (&of(0)["bytes"], &of(0)["block_bytes"]),
        (&json!(131), &json!(64))
    );
    let blocks = |n: usize| of(n)["blocks"].as_array().unwrap().clone();
    assert_eq!((blocks(0).len(), blocks(2).len()), (3, 1));
    assert!(
        blocks(0)
            .iter()
            .all(|hash| hash.as_str().unwrap().len() == 16)
    );
    assert_eq!(blocks(0)[..2], blocks(1)[..2]);
    assert_ne!(blocks(0)[2], blocks(1)[2]);
    assert_eq!(of(0)["model"], of(2)["model"]);
    assert_eq!(of(0)["model"].as_str().unwrap().len(), 16);
}

#[tokio::test]
async fn a_key_is_of_one_run() {
    let pod = Pod::start().await;
    let router = recording(&pod, &["--record-redact"]).start().await;
    router.post(COMPLETIONS, completion("x")).await;
    let router = router.restart().await;
    router.post(COMPLETIONS, completion("x")).await;
    let lines = lines(router).await;
    assert_ne!(lines[0]["redacted"]["model"], lines[1]["redacted"]["model"]);
    assert_ne!(
        lines[0]["redacted"]["blocks"],
        lines[1]["redacted"]["blocks"]
    );
}

#[tokio::test]
async fn recording_stops_at_its_greatest_length() {
    let pod = Pod::start().await;
    let router = recording(&pod, &["--record-max-bytes", "1000"])
        .start()
        .await;
    for _ in 0..12 {
        router.post(COMPLETIONS, completion("0123456789")).await;
    }
    router.log.has("--record-max-bytes").await;
    let log = router.log.clone();
    assert_eq!(
        router
            .metrics()
            .await
            .count("kthena_router_record_lost_requests_total", &[]),
        0.0
    );
    let file = router.dir().join(FILE);
    let length = std::fs::metadata(&file).unwrap().len();
    assert!((800..=1000).contains(&length), "{length}");
    lines(router).await;
    let told = log
        .lines()
        .iter()
        .filter(|l| l.contains("--record-max-bytes"))
        .count();
    assert_eq!(told, 1);
    assert!(!log.lines().iter().any(|l| l.contains("0123456789")));
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_stops_the_start() {
    let pod = Pod::start().await;
    let flags = ["--record-requests", "no/such/dir/requests.jsonl"];
    let mut router = setup().pods(&[&pod]).flags(&flags).launch().await;
    assert_eq!(router.exit_code().await, Some(1));
    router.log.has("no/such/dir/requests.jsonl").await;
}

#[tokio::test]
async fn what_was_recorded_can_be_replayed_in_both_forms() {
    for redact in [&[][..], &["--record-redact"]] {
        let pod = Pod::start().await;
        let mut router = recording(&pod, redact).start().await;
        let prompt = crate::text(3, 2_000);
        for _ in 0..3 {
            router.post(COMPLETIONS, completion(&prompt)).await;
        }
        router.terminate();
        assert_eq!(router.exit_code().await, Some(0));
        let file = router.dir().join(FILE);
        let args = ["replay", "--json", "--pods", "1", "--trace"];
        let args = [&args[..], &[file.to_str().unwrap()]].concat();
        let ended = e2e::run(env!("CARGO_BIN_EXE_kthena-router"), &args).await;
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let outcome: Value = serde_json::from_str(&ended.out).unwrap();
        let run = &outcome["runs"][0];
        assert_eq!((&run["requests"], &run["failed"]), (&3.into(), &0.into()));
        // The pod has said that it answered with three tokens.
        assert_eq!(run["completion_tokens"], 9, "{redact:?}");
        assert!(run["cached_share"].as_f64() > Some(0.5), "{redact:?}");
    }
}
