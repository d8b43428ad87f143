//! The other commands of the program.

use crate::{completion, setup};
use e2e::{Pod, model_route, model_server, run, scheduler};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kthena-router");

/// A directory with these files, and its path.
fn directory(files: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let path = dir.path().to_str().unwrap().to_owned();
    (dir, path)
}

#[tokio::test]
async fn validate_accepts_what_is_right() {
    let (server, route) = (model_server("m", &[], ""), model_route("m", "m", "m"));
    let (_dir, path) = directory(&[("server.yaml", &server), ("route.yaml", &route)]);
    let ended = run(PROGRAM, &["validate", "--config-dir", &path, "--strict"]).await;
    assert_eq!(
        (ended.code, ended.out),
        (Some(0), format!("ok: {path} is valid, 0 remarks\n"))
    );
}

#[tokio::test]
async fn validate_names_every_problem_with_its_place() {
    let server = model_server("m", &[], "").replace("vLLM", "Llama");
    let (_dir, path) = directory(&[("server.yaml", &server), ("more.yaml", "kind: [\n")]);
    let ended = run(PROGRAM, &["validate", "--config-dir", &path]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.out.contains(&format!(
            "error: {path}/server.yaml:6: spec.inferenceEngine: "
        )),
        "{}",
        ended.out
    );
    assert!(
        ended.out.contains(&format!("error: {path}/more.yaml:")),
        "{}",
        ended.out
    );
    assert!(
        ended.out.ends_with("not valid: 2 problems\n"),
        "{}",
        ended.out
    );
}

#[tokio::test]
async fn validate_strict_refuses_what_draws_a_warning() {
    let (server, route) = (model_server("m", &[], ""), model_route("m", "m", "m"));
    let (_dir, path) = directory(&[("server.yaml", &server), ("route.yaml", &route)]);
    let (_config_dir, config) = directory(&[(
        "router.yaml",
        &scheduler(&[("prefix-cache", 1)], "{blockSizeToHsh: 128}"),
    )]);
    let config = config + "/router.yaml";
    let args = [
        "validate",
        "--config-dir",
        &path,
        "--router-config",
        &config,
    ];
    let ended = run(PROGRAM, &args).await;
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    let at =
        "router.yaml:4: scheduler.pluginConfig[0].args.blockSizeToHsh: Plugin prefix-cache has";
    assert!(
        ended.out.contains("warning: ") && ended.out.contains(at),
        "{}",
        ended.out
    );
    let strict = run(PROGRAM, &[&args[..], &["--strict"]].concat()).await;
    assert_eq!(strict.code, Some(1), "{}", strict.out);
}

const CLAIMS: &str = "  trafficPolicy:\n    sessionSticky:\n      sources:\n      - {type: Header, name: X-Session}\n      \
                      - {type: JWTClaim, name: sub}\n";

#[tokio::test]
async fn validate_knows_that_a_claim_needs_auth() {
    let (server, route) = (model_server("m", &[], CLAIMS), model_route("m", "m", "m"));
    let (_dir, path) = directory(&[("server.yaml", &server), ("route.yaml", &route)]);
    let plain = scheduler(&[("prefix-cache", 1)], "{}");
    let auth = "auth: {issuer: i, jwksUri: 'https://issuer.test/keys'}\n";
    for (config, code) in [(plain.clone(), 1), (plain + auth, 0)] {
        let (_config_dir, config) = directory(&[("router.yaml", &config)]);
        let config = config + "/router.yaml";
        let args = [
            "validate",
            "--config-dir",
            &path,
            "--router-config",
            &config,
        ];
        let ended = run(PROGRAM, &args).await;
        assert_eq!(ended.code, Some(0), "a warning alone: {}", ended.out);
        let said = ended.out.contains(
            "spec.trafficPolicy.sessionSticky.sources[1]: JWTClaim names no session of ModelServer default/m",
        );
        assert_eq!(said, code == 1, "{}", ended.out);
        let strict = run(PROGRAM, &[&args[..], &["--strict"]].concat()).await;
        assert_eq!(strict.code, Some(code), "{}", strict.out);
    }
    let router = setup()
        .manifest("server.yaml", &server)
        .manifest("other.yaml", &model_server("n", &[], CLAIMS))
        .start()
        .await;
    let lines = router.log.lines();
    let said = lines
        .iter()
        .filter(|line| line.contains("JWTClaim names no session"));
    assert_eq!(said.count(), 1, "{lines:?}");
}

#[tokio::test]
async fn validate_strict_takes_what_is_for_a_cluster() {
    let server = model_server("m", &[], "").replace("  endpoints: []\n", "");
    let (_dir, path) = directory(&[("server.yaml", &server)]);
    let ended = run(PROGRAM, &["validate", "--config-dir", &path, "--strict"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("note: ") && ended.out.contains("endpoints is not set"));
}

#[tokio::test]
async fn validate_checks_the_weights() {
    let (_dir, path) = directory(&[]);
    let (_config_dir, config) =
        directory(&[("router.yaml", &scheduler(&[("prefix-cache", 0)], "{}"))]);
    let config = config + "/router.yaml";
    let ended = run(
        PROGRAM,
        &[
            "validate",
            "--config-dir",
            &path,
            "--router-config",
            &config,
        ],
    )
    .await;
    assert_eq!(ended.code, Some(1));
    let wanted = "router.yaml:9: scheduler.plugins.Score.enabled[0].weight: failed to Load Scheduler: \
                  failed to Unmarshal Plugins: score plugin \"prefix-cache\" must set a weight \
                  greater than 0, got 0";
    assert!(ended.out.contains(wanted), "{}", ended.out);
}

#[tokio::test]
async fn explain_prints_what_a_running_router_would_do() {
    let [a, b] = Pod::several().await;
    let router = setup().pods(&[&a, &b]).start().await;
    router.post(crate::COMPLETIONS, completion("x")).await;
    let (_dir, file) = directory(&[("request.json", &completion("x"))]);
    let file = file + "/request.json";
    let url = format!("http://127.0.0.1:{}", router.debug_port);
    let args = [
        "explain",
        "--debug-url",
        &url,
        "--path",
        crate::COMPLETIONS,
        &file,
    ];
    let ended = run(PROGRAM, &args).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for part in [
        "modelServer  default/m",
        "1 blocks hashed",
        "prefix-cache",
        "default/m:p0",
        "in this order: default/m:p",
    ] {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    assert_eq!(a.seen().len() + b.seen().len(), 1, "nothing was sent");
    // An error of the router is the command's error.
    let (_dir, file) = directory(&[("request.json", r#"{"model":"other"}"#)]);
    let file = file + "/request.json";
    let ended = run(PROGRAM, &["explain", "--debug-url", &url, &file]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("404 Not Found: route not found"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn demo_plays_and_ends_with_its_table() {
    plays(
        "prefix",
        &[
            "score plugins",
            "cached tokens",
            "TTFT mean",
            "random",
            "default (prefix-cache",
        ],
    )
    .await;
}

#[tokio::test]
async fn j3_demo_shows_prefill_and_decode_together_and_apart() {
    plays(
        "pd",
        &[
            "prefill and decode",
            "on the same engines",
            "on different engines",
            "longest pause in an answer",
        ],
    )
    .await;
}

/// Plays a scenario of the demo and looks for these parts of its table.
async fn plays(scenario: &str, parts: &[&str]) {
    let flags = ["demo", "--scenario", scenario, "--for", "4s", "--exit"];
    let ended = run(PROGRAM, &flags).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for part in parts {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    let first = ended.out.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("watch it live: http://127.0.0.1:"),
        "{first}"
    );
    // Both passes have a row: requests, and none failed.
    let rows: Vec<Vec<&str>> = ended
        .out
        .lines()
        .filter(|l| l.contains(" ms "))
        .map(|l| {
            l.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(rows.len(), 2, "{}", ended.out);
    assert!(
        rows.iter().all(|row| row[2] == "0"),
        "no request failed: {}",
        ended.out
    );
}

#[tokio::test]
async fn j2_demo_shows_what_sessions_change() {
    let args = ["demo", "--scenario", "sticky", "--for", "4s", "--exit"];
    let ended = run(PROGRAM, &args).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let row = |name: &str| -> Vec<&str> {
        let line = ended
            .out
            .lines()
            .find(|l| l.contains(name) && l.contains(" ms "));
        let cells = line
            .unwrap_or_else(|| panic!("{name} in {}", ended.out))
            .split("  ");
        cells
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    let (random, sticky) = (row("at random   "), row("at random, once a session"));
    assert_eq!((random[2], sticky[2]), ("0", "0"), "no request failed");
    let pods = |row: &[&str]| row[3].parse::<f64>().unwrap();
    assert!(pods(&random) > 1.5, "{}", ended.out);
    assert_eq!(pods(&sticky), 1.0, "{}", ended.out);
}

#[tokio::test]
async fn flags_have_help_and_mistakes_are_named() {
    let ended = run(PROGRAM, &["--help"]).await;
    assert_eq!(ended.code, Some(0));
    for flag in [
        "--port",
        "--metrics-port",
        "--debug-port",
        "--config-source",
        "--config-dir",
        "--router-config",
        "-v",
    ] {
        assert!(ended.out.contains(flag), "{flag} in {}", ended.out);
    }
    let ended = run(PROGRAM, &["--prot", "1"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("--prot") && ended.err.contains("--port"),
        "{}",
        ended.err
    );
    let ended = run(PROGRAM, &["--version"]).await;
    assert_eq!(
        ended.out,
        format!("kthena-router {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[tokio::test]
async fn demo_says_at_once_that_its_port_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for scenario in ["prefix", "pd", "sticky"] {
        let args = ["demo", "--exit", "--scenario", scenario, "--port", &port];
        let ended = run(PROGRAM, &args).await;
        assert_eq!(ended.code, Some(1), "{}", ended.out);
        assert!(ended.err.contains(&port), "{}", ended.err);
        assert!(!ended.out.contains("simulated engines"), "{}", ended.out);
    }
}
