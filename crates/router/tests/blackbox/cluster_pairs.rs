//! Pairs and sessions on a cluster.

use crate::pair::{endpoint, in_flight};
use crate::{COMPLETIONS, completion, setup, text};
use e2e::{ApiServer, End, Pod, Router, Script, cluster_pod, custom, event, until};
use serde_json::{Value, json};

/// An API server that knows model `m`, whose pods work in pairs, and four engines on one port of 127.0.0.1 to 127.0.0.4, of
/// which the pods are still to be stored.
async fn cluster(policy: Value) -> (ApiServer, [Pod; 4]) {
    let first = Pod::start().await;
    let at = |number| format!("127.0.0.{number}");
    let pods = [
        Pod::start_at(&at(2), first.port()).await,
        Pod::start_at(&at(3), first.port()).await,
        Pod::start_at(&at(4), first.port()).await,
    ];
    let api = ApiServer::start().await;
    let spec = json!({
        "inferenceEngine": "vLLM",
        "kvConnector": {"type": "http"},
        "workloadSelector": {"matchLabels": {"app": "m"}, "pdGroup": {
            "groupKey": "group", "prefillLabels": {"role": "prefill"}, "decodeLabels": {"role": "decode"},
        }},
        "workloadPort": {"port": first.port()},
        "trafficPolicy": policy,
    });
    api.put("modelservers", custom("ModelServer", "m", spec));
    let rules = json!([{"targetModels": [{"modelServerName": "m"}]}]);
    let route = json!({"modelName": "m", "rules": rules});
    api.put("modelroutes", custom("ModelRoute", "m", route));
    let [second, third, fourth] = pods;
    (api, [first, second, third, fourth])
}

fn put(api: &ApiServer, name: &str, number: usize, group: &str, role: &str) {
    let labels = [("app", "m"), ("group", group), ("role", role)];
    api.put(
        "pods",
        cluster_pod(name, &format!("127.0.0.{number}"), &labels),
    );
}

/// Sends a prompt of its own; returns the prefill and the decode pod.
async fn served(router: &Router, session: &str, id: &str) -> [String; 2] {
    let headers = [("x-session", session), ("x-request-id", id)];
    let answer = router
        .post_with(COMPLETIONS, &headers, completion(id))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let line = router.logged(id).await;
    [
        endpoint(&line["prefill_pod"]),
        endpoint(&line["selected_pod"]),
    ]
}

/// The pairs that would be asked.
async fn planned(router: &Router) -> Value {
    router.explain(COMPLETIONS, completion("x")).await["attempts"].clone()
}

#[tokio::test]
async fn j3_roles_on_a_cluster_move_with_the_labels_while_requests_run() {
    let (api, [a, b, ..]) = cluster(json!(null)).await;
    put(&api, "a", 1, "g", "prefill");
    put(&api, "b", 2, "g", "decode");
    let router = setup().cluster(&api).start().await;
    until("the pair is there", async || {
        (planned(&router).await == json!([{"prefill": "default/a", "decode": "default/b"}]))
            .then_some(())
    })
    .await;
    let prompt = completion(&text(1, 640));
    assert_eq!(router.post(COMPLETIONS, &prompt).await.status, 200);
    let (script, stream) = Script::stream();
    b.next(script);
    let mut client = router.connect().await;
    client.request("POST", COMPLETIONS, &[], &prompt).await;
    stream.send(event("one"));
    client.head().await;
    client.expect(event("one")).await;
    // A new group, and the roles change places.
    for (name, role) in [("a", "decode"), ("b", "prefill")] {
        api.edit("pods", name, |pod| {
            pod["metadata"]["labels"]["role"] = role.into();
            pod["metadata"]["labels"]["group"] = "h".into();
        });
    }
    until("the roles have changed", async || {
        (planned(&router).await == json!([{"prefill": "default/b", "decode": "default/a"}]))
            .then_some(())
    })
    .await;
    assert_eq!(in_flight(&router).await["b"], 1, "the stream still runs");
    assert_eq!(served(&router, "", "swapped").await, ["b", "a"]);
    stream.send(event("two"));
    stream.finish();
    let (rest, end) = client.rest().await;
    assert_eq!(
        (String::from_utf8(rest).unwrap(), end),
        (event("two"), End::Whole)
    );
    let metrics = router.metrics().await;
    // Ten blocks each of the first prompt, and one of the last.
    let entries = metrics.value("kthena_router_prefix_cache_entries", &[]);
    assert_eq!(entries, Some(22.0), "what they have recorded stays");
    assert_eq!((a.seen().len(), b.seen().len()), (3, 3));
    api.delete("pods", "a");
    until("no decode pod is left", async || {
        let answer = router.post(COMPLETIONS, completion("x")).await;
        (answer.status == 503 && answer.text().contains("no decode pod found")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn j2_a_session_on_a_cluster_keeps_its_pair_and_outlives_it() {
    let sources = json!([{"type": "Header", "name": "X-Session"}]);
    let (api, _pods) = cluster(json!({"sessionSticky": {"sources": sources}})).await;
    let names = [["p0", "d0"], ["p1", "d1"]];
    for (group, pair) in names.iter().enumerate() {
        put(
            &api,
            pair[0],
            2 * group + 1,
            &format!("g{group}"),
            "prefill",
        );
        put(&api, pair[1], 2 * group + 2, &format!("g{group}"), "decode");
    }
    let router = setup().cluster(&api).start().await;
    until("both pairs are there", async || {
        (planned(&router).await.as_array().map_or(0, Vec::len) == 2).then_some(())
    })
    .await;
    let bound = served(&router, "s", "first").await;
    for number in 0..6 {
        assert_eq!(
            served(&router, "s", &format!("pinned-{number}")).await,
            bound
        );
    }
    // Its prefill pod is deleted: the pair is no more.
    api.delete("pods", &bound[0]);
    until("one pair is left", async || {
        (planned(&router).await.as_array().map_or(0, Vec::len) == 1).then_some(())
    })
    .await;
    let other = names[usize::from(bound[0] == "p0")].map(str::to_owned);
    for number in 0..4 {
        assert_eq!(
            served(&router, "s", &format!("moved-{number}")).await,
            other
        );
    }
}
