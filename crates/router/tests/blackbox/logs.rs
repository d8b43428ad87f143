//! The log and the access log, as people and parsers read them.

use crate::{CHAT, COMPLETIONS, completion, setup};
use e2e::{Pod, Script, scheduler, until};

/// A line of the log without its klog prefix.
fn message(line: &str) -> &str {
    line.split_once("] ").map_or(line, |(_, message)| message)
}

#[tokio::test]
async fn h1_the_scores_of_each_plugin_at_verbosity_4() {
    let [a, b] = Pod::several().await;
    let config = scheduler(&[("prefix-cache", 1), ("gpu-usage", 2)], "{}");
    let router = setup().pods(&[&a, &b]).config(&config).start().await;
    router.chat("x").await;
    let last = router.log.has("p1, Final Score: ").await;
    let lines = router.log.lines();
    let scores: Vec<_> = lines
        .iter()
        .map(|l| message(l))
        .skip_while(|l| !l.starts_with("ScorePlugin: "))
        .take_while(|l| l.contains("Score"))
        .collect();
    let wanted = "ScorePlugin: prefix-cache\n\
                  Pod: default/m:p0, Score: 0\n\
                  Pod: default/m:p1, Score: 0\n\
                  ScorePlugin: gpu-usage\n\
                  Pod: default/m:p0, Score: 100\n\
                  Pod: default/m:p1, Score: 100\n\
                  Final Pod Scores:\n  \
                  Pod: default/m:p0, Final Score: 200\n  \
                  Pod: default/m:p1, Final Score: 200";
    assert_eq!(scores.join("\n"), wanted);
    // I1129 22:39:12.123456   12345 infer.rs:88] message
    let (prefix, _) = last.split_once("] ").unwrap();
    let fields: Vec<_> = prefix.split_whitespace().collect();
    assert_eq!(fields.len(), 4, "{last}");
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
    assert!(
        fields[0].starts_with('I') && digits(fields[0]) == 4,
        "{last}"
    );
    assert_eq!((fields[1].len(), digits(fields[1])), (15, 12), "{last}");
    assert!(fields[3].contains(".rs:"), "{last}");
}

#[tokio::test]
async fn h1_no_scores_below_verbosity_4() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).flags(&["-v", "3"]).start().await;
    router
        .post_with(CHAT, &[("x-request-id", "r")], completion("x"))
        .await;
    router.logged("r").await;
    assert!(!router.log.lines().iter().any(|l| l.contains("Score")));
}

#[tokio::test]
async fn h1_the_lines_of_one_request_stay_together() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    let mut clients = Vec::new();
    for number in 0..30 {
        let mut client = router.connect().await;
        let body = completion(&number.to_string());
        client.request("POST", COMPLETIONS, &[], body).await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    let scores = async || {
        let lines = router.log.lines().into_iter();
        let scores: Vec<_> = lines.filter(|l| l.contains("Score")).collect();
        (scores.len() == 30 * 6).then_some(scores)
    };
    let lines = until("six lines of each request", scores).await;
    for request in lines.chunks(6) {
        let starts = request.iter().map(|l| &message(l)[..6]);
        let wanted = ["ScoreP", "Pod: d", "Pod: d", "Final ", "  Pod:", "  Pod:"];
        assert!(starts.eq(wanted), "{request:#?}");
    }
}

/// A line with its time, id of the process and durations taken out.
fn masked(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    for (before, after) in [
        ("[20", "] "),
        ("\"timestamp\":\"20", "\","),
        (" timings=", ")"),
        ("\"duration_total\":", ","),
        ("\"duration_request_processing\":", ","),
        ("\"duration_upstream_processing\":", ","),
        ("\"duration_response_processing\":", "}"),
    ] {
        if let Some((head, tail)) = rest.split_once(before) {
            let (hidden, tail) = tail.split_once(after).expect("a value has an end");
            assert!(hidden.contains(|c: char| c.is_ascii_digit()), "{line}");
            out.push_str(&format!("{head}{before}…{after}"));
            rest = tail;
        }
    }
    out + rest
}

#[tokio::test]
async fn the_access_log_as_text() {
    let pod = Pod::start().await;
    let router = setup()
        .server(&[&pod], "  model: real\n")
        .env("ACCESS_LOG_FORMAT", "text")
        .start()
        .await;
    router
        .post_with(COMPLETIONS, &[("x-request-id", "good")], completion("0123"))
        .await;
    assert_eq!(
        masked(&router.out.has("request_id=good").await),
        "[20…] \"POST /v1/completions HTTP/1.1\" 200 model_name=m model_route=default/m model_server=default/m \
         selected_pod=m:p0 request_id=good backend_type=model_server backend_name=default/m upstream_model=real \
         upstream_status_code=200 upstream_attempts=1 tokens=1/3 timings=…)"
    );
    pod.answers(Script::json(422, "{}"));
    router
        .post_with(COMPLETIONS, &[("x-request-id", "bad")], completion("0123"))
        .await;
    assert_eq!(
        masked(&router.out.has("request_id=bad").await),
        "[20…] \"POST /v1/completions HTTP/1.1\" 422 error=upstream_response:pod returned HTTP 422 model_name=m \
         model_route=default/m model_server=default/m selected_pod=m:p0 request_id=bad backend_type=model_server \
         backend_name=default/m upstream_model=real upstream_status_code=422 upstream_attempts=1 \
         error_origin=upstream tokens=1/0 timings=…)"
    );
    router
        .post_with("/v1/x", &[("x-request-id", "lost")], r#"{"model":"a\nb"}"#)
        .await;
    assert_eq!(
        masked(&router.out.has("request_id=lost").await),
        "[20…] \"POST /v1/x HTTP/1.1\" 404 error=route_not_found:route not found model_name=a\\nb request_id=lost \
         error_origin=router timings=…)"
    );
}

#[tokio::test]
async fn a_client_cannot_forge_fields_of_the_log_nor_fill_it() {
    let pod = Pod::start().await;
    let setup = setup().pods(&[&pod]).env("ACCESS_LOG_FORMAT", "text");
    let router = setup.start().await;
    let id = [("x-request-id", "a b backend_type=evil")];
    let forged = r#"{"model":"m selected_pod=evil"}"#;
    router.post_with(COMPLETIONS, &id, forged).await;
    let line = masked(&router.out.has("evil").await);
    // A parser that looks for `key=` anywhere finds none either; an id that is no word is replaced.
    assert!(
        line.contains(" model_name=m\\u{20}selected_pod\\u{3d}evil request_id="),
        "{line}"
    );
    assert!(!line.contains("backend_type"), "{line}");
    let long = "x".repeat(10_000);
    let id = [("x-request-id", long.as_str())];
    router.post_with(COMPLETIONS, &id, completion("x")).await;
    let line = router.out.has(" 200 ").await;
    assert!(line.len() < 1000, "{line}");
    let given = pod.only().headers.get("x-request-id").map(str::len);
    assert_eq!(given, Some(36), "the engine gets the one that is logged");
}

#[tokio::test]
async fn the_access_log_as_json() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    router
        .post_with(COMPLETIONS, &[("x-request-id", "good")], completion("0123"))
        .await;
    let line = router.out.has("good").await;
    assert_eq!(
        masked(&line),
        "{\"timestamp\":\"20…\",\"method\":\"POST\",\"path\":\"/v1/completions\",\"protocol\":\"HTTP/1.1\",\
         \"status_code\":200,\"model_name\":\"m\",\"model_route\":\"default/m\",\"model_server\":\"default/m\",\
         \"selected_pod\":\"m:p0\",\"request_id\":\"good\",\"backend_type\":\"model_server\",\
         \"backend_name\":\"default/m\",\"upstream_model\":\"m\",\"upstream_status_code\":200,\
         \"upstream_attempts\":1,\"input_tokens\":1,\"output_tokens\":3,\"duration_total\":…,\
         \"duration_request_processing\":…,\"duration_upstream_processing\":…,\"duration_response_processing\":…}"
    );
    router
        .post_with(CHAT, &[("x-request-id", "bad")], "[]")
        .await;
    assert_eq!(
        masked(&router.out.has("\"bad\"").await),
        "{\"timestamp\":\"20…\",\"method\":\"POST\",\"path\":\"/v1/chat/completions\",\"protocol\":\"HTTP/1.1\",\
         \"status_code\":400,\"error\":{\"type\":\"request_parsing\",\"message\":\"the body must be a JSON object\"},\
         \"model_name\":\"\",\"request_id\":\"bad\",\"error_origin\":\"router\",\"duration_total\":…,\
         \"duration_request_processing\":…,\"duration_upstream_processing\":…,\"duration_response_processing\":…}"
    );
    // Only requests below /v1/ have a line.
    router.get(router.port, "/healthz").await;
    router
        .post_with(CHAT, &[("x-request-id", "last")], completion("x"))
        .await;
    router.logged("last").await;
    assert_eq!(router.out.lines().len(), 3);
}

#[tokio::test]
async fn the_access_log_in_a_file_or_off() {
    let pod = Pod::start().await;
    let mut router = setup()
        .pods(&[&pod])
        .env("ACCESS_LOG_OUTPUT", "access.log")
        .start()
        .await;
    router.chat("x").await;
    let file = router.dir().join("access.log");
    router.terminate();
    assert_eq!(router.exit_code().await, Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(router.out.lines().len(), 0);
    let mut router = setup()
        .pods(&[&pod])
        .env("ACCESS_LOG_ENABLED", "false")
        .start()
        .await;
    router.chat("x").await;
    router.terminate();
    assert_eq!(router.exit_code().await, Some(0));
    assert_eq!(router.out.lines().len(), 0);
}

#[tokio::test]
async fn the_list_of_models_is_logged_and_counted_like_any_request() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (path, id, status) in [
        ("/v1/models", "all", 200),
        ("/v1/models/m", "one", 200),
        ("/v1/models/none", "none", 404),
    ] {
        let mut client = router.connect().await;
        client
            .request("GET", path, &[("x-request-id", id)], "")
            .await;
        assert_eq!(client.answer().await.status, status);
        let line = router.logged(id).await;
        assert_eq!(
            (&line["path"], &line["status_code"]),
            (&path.into(), &status.into())
        );
        let origin = if status == 200 { "" } else { "router" };
        assert_eq!(line["error_origin"].as_str().unwrap_or_default(), origin);
    }
    let metrics = router.metrics().await;
    let labels = [("path", "/v1/models"), ("status_code", "200")];
    assert_eq!(metrics.count("kthena_router_requests_total", &labels), 1.0);
    assert_eq!(metrics.count("kthena_router_active_requests", &[]), 0.0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_access_log_that_cannot_be_written_says_so() {
    let pod = Pod::start().await;
    let setup = setup().pods(&[&pod]).env("ACCESS_LOG_OUTPUT", "/dev/full");
    let router = setup.start().await;
    router.chat("x").await;
    router.log.has("cannot write the access log").await;
    until("the lost line is counted", async || {
        let metrics = router.metrics().await;
        let lost = metrics.count("kthena_router_access_log_lost_lines_total", &[]);
        (lost >= 1.0).then_some(())
    })
    .await;
}
