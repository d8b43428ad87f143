//! A cluster whose API server is behind TLS.

use crate::{COMPLETIONS, completion, setup};
use e2e::{ApiServer, CertificateAuthority, Pod, cluster_pod, custom, until};
use serde_json::json;

/// An API server behind TLS that knows one pod of model `m`.
async fn cluster(authority: &CertificateAuthority) -> (ApiServer, Pod) {
    let pod = Pod::start().await;
    let api = ApiServer::start_tls(authority).await;
    let spec = json!({
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": {"app": "m"}},
        "workloadPort": {"port": pod.port()},
    });
    api.put("modelservers", custom("ModelServer", "m", spec));
    let rules = json!([{"targetModels": [{"modelServerName": "m"}]}]);
    let spec = json!({"modelName": "m", "rules": rules});
    api.put("modelroutes", custom("ModelRoute", "m", spec));
    api.put("pods", cluster_pod("a", "127.0.0.1", &[("app", "m")]));
    (api, pod)
}

#[tokio::test]
async fn the_api_server_of_a_kubeconfigs_authority_is_followed() {
    let authority = CertificateAuthority::default();
    let (api, pod) = cluster(&authority).await;
    let router = setup().cluster(&api).start().await;
    let answer = router.post(COMPLETIONS, completion("x")).await;
    assert_eq!((answer.status, pod.seen().len()), (200, 1));
    api.delete("pods", "a");
    until("the watch is heard", async || {
        let page = router.debug("pods").await;
        page["pods"].is_null().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_api_server_of_another_authority_gets_nothing() {
    let (api, _pod) = cluster(&CertificateAuthority::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let other = CertificateAuthority::default().pem();
    let kubeconfig = api.kubeconfig_trusting(dir.path(), Some(&other));
    let router = setup()
        .flags(&["--config-source", "kubernetes"])
        .env("KUBECONFIG", &kubeconfig.to_string_lossy())
        .launch()
        .await;
    let said = until("the log says why", async || {
        let lines = router.log.lines();
        let wrong = |line: &&String| line.contains("the API server cannot be asked for");
        lines.iter().find(wrong).cloned()
    })
    .await;
    assert!(
        said.contains("invalid peer certificate") && said.ends_with("not ready until it can"),
        "{said}"
    );
    let ready = router.get(router.port, "/readyz").await;
    assert_eq!(ready.status, 503);
    let alive = router.get(router.port, "/healthz").await;
    assert_eq!(alive.status, 200);
    assert!(api.lists("pods").is_empty(), "no token went to it");
}
