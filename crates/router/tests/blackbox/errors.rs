//! What the router answers by itself: status, class and shape.

use crate::{CHAT, completion, setup};
use e2e::Pod;

#[tokio::test]
async fn a_body_that_is_no_json_is_400_and_names_the_offset() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (body, offset) in [
        (r#"{"model":"m",}"#, 13),
        (r#"{"model":"m" "x":1}"#, 13),
        (r#"{"model":"m","x":01}"#, 18),
        (r#"{"model":"m""#, 12),
        ("", 0),
    ] {
        let (status, kind, message) = router.post(CHAT, body).await.error();
        assert_eq!((status, kind.as_str()), (400, "request_parsing"), "{body}");
        assert!(
            message.starts_with("the body is not valid JSON: "),
            "{body}: {message}"
        );
        assert!(
            message.ends_with(&format!(" at byte {offset}")),
            "{body}: {message}"
        );
    }
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn each_error_has_its_status_and_class() {
    let pod = Pod::start().await;
    let dangling = e2e::model_route("dangling", "dangling", "gone");
    let router = setup()
        .pods(&[&pod])
        .manifest("dangling.yaml", &dangling)
        .start()
        .await;
    for (body, status, kind, message) in [
        (
            "[1]",
            400,
            "request_parsing",
            "the body must be a JSON object",
        ),
        ("{}", 404, "request_parsing", "model not found"),
        (r#"{"model":7}"#, 404, "request_parsing", "model not found"),
        (
            r#"{"model":" "}"#,
            404,
            "request_parsing",
            "model not found",
        ),
        (
            r#"{"model":"other"}"#,
            404,
            "route_not_found",
            "route not found",
        ),
        (
            r#"{"model":"dangling"}"#,
            404,
            "pod_discovery",
            "can't find model server: default/gone",
        ),
    ] {
        let answer = router.post(CHAT, body).await;
        assert_eq!(answer.headers.get("content-type"), Some("application/json"));
        assert_eq!(
            answer.error(),
            (status, kind.to_owned(), message.to_owned()),
            "{body}"
        );
    }
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn codings_that_the_router_cannot_read_are_refused() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    for (coding, status) in [
        ("br", 415),
        ("gzip, gzip", 415),
        ("gzip", 400),
        ("deflate", 400),
        ("zstd", 400),
    ] {
        let headers = [("content-encoding", coding)];
        let answer = router
            .post_with(CHAT, &headers, completion("not packed at all"))
            .await;
        let (got, kind, message) = answer.error();
        assert_eq!(
            (got, kind.as_str()),
            (status, "request_parsing"),
            "{coding}: {message}"
        );
    }
    let plain = [("content-encoding", "identity")];
    assert_eq!(
        router.post_with(CHAT, &plain, completion("x")).await.status,
        200
    );
}

#[tokio::test]
async fn messages_has_errors_in_its_own_shape() {
    let router = setup().pods(&[]).start().await;
    let answer = router.post("/v1/messages", completion("x")).await;
    assert_eq!(
        (answer.status, &answer.json()["type"]),
        (503, &"error".into())
    );
    assert_eq!(answer.json()["error"]["type"], "pod_discovery");
}

#[tokio::test]
async fn a_refused_request_leaves_its_connection_usable() {
    let pod = Pod::start().await;
    let router = setup().pods(&[&pod]).start().await;
    let mut client = router.connect().await;
    for body in ["{", "[]", "{}"] {
        client.request("POST", CHAT, &[], body).await;
        assert!(client.answer().await.status >= 400);
    }
    client.request("POST", CHAT, &[], completion("x")).await;
    assert_eq!(client.answer().await.status, 200);
}
