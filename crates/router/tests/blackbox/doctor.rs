//! `kthena-router doctor` and the page of the debug listener, before routers with something wrong and without.

use crate::setup;
use e2e::{Ended, Pod, Router, run, scheduler, until};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kthena-router");

/// What the command says of a router.
pub(crate) async fn examined(router: &Router) -> Ended {
    let [metrics, debug] =
        [router.metrics_port, router.debug_port].map(|port| format!("http://127.0.0.1:{port}"));
    let args = [
        "doctor",
        "--metrics-url",
        &metrics,
        "--debug-url",
        &debug,
        "--for",
        "0s",
    ];
    run(PROGRAM, &args).await
}

/// The command finds this, and says so by its exit code.
pub(crate) async fn finds(router: &Router, check: &str) -> String {
    let ended = examined(router).await;
    assert!(
        ended.out.contains(&format!("[{check}]")),
        "{}{}",
        ended.out,
        ended.err
    );
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    // Lines are broken for people.
    ended.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command finds nothing that is wrong.
pub(crate) async fn is_content(router: &Router) {
    let ended = examined(router).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
}

#[tokio::test]
async fn i5_doctor_names_a_misspelled_argument() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{blockSizeToHsh: 128}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    let said = finds(&router, "misspelled-argument").await;
    assert!(
        said.contains("did you mean blockSizeToHash?") && said.contains("rollout restart"),
        "{said}"
    );
    let right = scheduler(&[("prefix-cache", 1)], "{blockSizeToHash: 128}");
    std::fs::write(router.dir().join("routerConfiguration.yaml"), right).unwrap();
    is_content(&router.restart().await).await;
}

#[tokio::test]
async fn i5_doctor_says_that_a_change_waits_for_a_restart() {
    let pod = Pod::start().await;
    let config = |size: u32| {
        scheduler(
            &[("prefix-cache", 1)],
            &format!("{{blockSizeToHash: {size}}}"),
        )
    };
    let router = setup().pods(&[&pod]).config(&config(64)).start().await;
    is_content(&router).await;
    std::fs::write(router.dir().join("routerConfiguration.yaml"), config(128)).unwrap();
    let said = finds(&router, "not-restarted").await;
    assert!(said.contains("rollout restart"), "{said}");
    is_content(&router.restart().await).await;
}

#[tokio::test]
async fn doctor_tells_pods_that_cannot_be_read() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    is_content(&router).await;
    pod.shows(None).await;
    until("the reading is too old", async || {
        let page = router.debug("pods").await;
        (page["pods"][0]["metricsKnown"] == false).then_some(())
    })
    .await;
    let said = finds(&router, "pods-unknown").await;
    assert!(said.contains("default/m:p0"), "{said}");
}

#[tokio::test]
async fn doctor_of_nothing_has_an_exit_code_of_its_own() {
    let pod = Pod::start().await;
    let nobody = format!("http://127.0.0.1:{}", pod.port());
    let ended = run(
        PROGRAM,
        &["doctor", "--metrics-url", &nobody, "--for", "0s"],
    )
    .await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("is no metrics page of a router"),
        "{}",
        ended.err
    );
    let port = pod.port();
    drop(pod);
    let gone = format!("http://127.0.0.1:{port}");
    let ended = run(PROGRAM, &["doctor", "--metrics-url", &gone, "--for", "0s"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("if the router does not start"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn doctor_of_another_listener_invents_nothing() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let [metrics, inference] = [router.metrics_port, router.port].map(url);
    for debug in [&metrics, &inference] {
        let args = ["--metrics-url", &metrics, "--debug-url", debug];
        let ended = run(PROGRAM, &[&["doctor", "--for", "0s"][..], &args].concat()).await;
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{}", ended.err);
        assert!(ended.err.contains("no debug listener"), "{}", ended.err);
    }
    let debug = url(router.debug_port);
    let twice = ["--metrics-url", &metrics, "--metrics-url", &metrics];
    let args = [
        &["doctor", "--for", "0s", "--debug-url", &debug][..],
        &twice,
    ]
    .concat();
    let ended = run(PROGRAM, &args).await;
    assert_eq!(ended.code, Some(2), "{}", ended.out);
    assert!(
        ended.err.contains("names an address twice"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn i5_the_debug_listener_says_what_the_command_says() {
    let pod = Pod::start().await;
    let config = scheduler(&[("prefix-cache", 1)], "{topKMatchs: 3}");
    let router = setup().pods(&[&pod]).config(&config).start().await;
    let page = router.get(router.debug_port, "/debug/doctor").await;
    assert_eq!(
        page.headers.get("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(page.text(), examined(&router).await.out);
    let json = router
        .get(router.debug_port, "/debug/doctor?format=json")
        .await
        .json();
    let checks: Vec<_> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| &f["check"])
        .collect();
    assert_eq!(checks, ["misspelled-argument"]);
    assert_eq!(json["findings"][0]["severity"], "problem");
    assert_eq!(json["judged"], false, "there was no request");
    let router_page: Value = router.get(router.debug_port, "/debug/router").await.json();
    assert_eq!(router_page["warnings"][0]["kind"], "unknown-argument");
    assert_eq!(
        router_page["scores"],
        serde_json::json!([{"name": "prefix-cache", "weight": 1}])
    );
    assert_eq!(router_page["filters"], serde_json::json!(["least-request"]));
}

#[tokio::test]
async fn the_page_stands_alone() {
    let router = setup().pods(&[]).start().await;
    let page = router.get(router.debug_port, "/").await;
    assert_eq!(page.status, 200);
    assert_eq!(
        page.headers.get("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.headers.get("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(
        policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    for port in [router.port, router.metrics_port] {
        assert_eq!(
            router.get(port, "/").await.status,
            404,
            "it is on the debug listener only"
        );
    }
}
