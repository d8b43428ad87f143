//! What `explain` says of a session, and that a look at it changes nothing.

use crate::{COMPLETIONS, completion, setup};
use e2e::{Client, Gauges, Pod, Router};
use serde_json::{Value, json};

const STICKY: &str = "  trafficPolicy:\n    sessionSticky:\n      sources:\n      - {type: Header, name: X-Session}\n      \
                      - {type: Query, name: session}\n";

/// How a completion with these headers, and this query after its path, would be scheduled.
async fn explained(router: &Router, query: &str, headers: &[(&str, &str)]) -> Value {
    let mut client = Client::connect(router.debug_port).await;
    let path = format!("/debug/explain?path={COMPLETIONS}{query}");
    client
        .request("POST", &path, headers, completion("x"))
        .await;
    client.answer().await.json()
}

async fn two_pods() -> ([Pod; 2], Router) {
    let pods: [Pod; 2] = Pod::several().await;
    let [a, b] = &pods;
    let config = e2e::scheduler(&[("random", 1)], "{}");
    let setup = setup().server(&[a, b], STICKY).config(&config);
    let router = setup.start().await;
    (pods, router)
}

const SESSION: [(&str, &str); 1] = [("x-session", "the-key")];

#[tokio::test]
async fn j2_explain_shows_the_pod_of_a_bound_session() {
    let (pods, router) = two_pods().await;
    for _ in 0..8 {
        let plan = explained(&router, "", &SESSION).await;
        assert_eq!(plan["session"], Value::Null, "explaining binds nothing");
    }
    let answer = router.post_with(COMPLETIONS, &SESSION, completion("x"));
    assert_eq!(answer.await.status, 200);
    let bound = usize::from(pods[0].seen().is_empty());
    let names = [bound, 1 - bound].map(|number| format!("default/m:p{number}"));
    // By chance it would be once in 65,000 runs.
    for _ in 0..16 {
        let plan = explained(&router, "", &SESSION).await;
        let wanted = json!({"source": "Header", "pod": names[0], "survives": true});
        assert_eq!(plan["session"], wanted);
        assert_eq!(plan["attempts"], json!(names));
        assert!(!plan.to_string().contains("the-key"), "{plan}");
    }
    let plan = explained(&router, "%3Fa%3Db%26session=the-key", &[]).await;
    assert_eq!(plan["session"]["source"], "Query");
    assert_eq!(explained(&router, "", &[]).await["session"], Value::Null);
}

#[tokio::test]
async fn j2_explain_says_that_a_bound_pod_is_filtered() {
    let (pods, router) = two_pods().await;
    router
        .post_with(COMPLETIONS, &SESSION, completion("x"))
        .await;
    let bound = usize::from(pods[0].seen().is_empty());
    let full = Gauges {
        waiting: 10,
        ..Gauges::default()
    };
    pods[bound].shows(Some(full)).await;
    let plan = explained(&router, "", &SESSION).await;
    let pod = format!("default/m:p{bound}");
    let wanted = json!({"source": "Header", "pod": pod, "survives": false});
    assert_eq!(plan["session"], wanted);
    assert_eq!(
        plan["attempts"],
        json!([format!("default/m:p{}", 1 - bound)])
    );
}
