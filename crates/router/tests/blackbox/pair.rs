//! Two pairs of scripted pods behind a router, and what can be asked of them.

use crate::{COMPLETIONS, completion, setup, text};
use e2e::{Pod, Router, Setup, until};
use serde_json::Value;
use std::collections::BTreeMap;

/// A ModelServer `default/m` of these endpoints. A name says what a pod is: `p0` does prefill in group 0, `d1` and `d1b` do
/// decode in group 1. `extra` are further lines of its spec, each indented by two.
pub(crate) fn manifest(engine: &str, pods: &[(&str, &str, u16)], extra: &str) -> String {
    let mut manifest = format!(
        "apiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelServer\nmetadata:\n  name: m\nspec:\n  \
         inferenceEngine: {engine}\n  workloadSelector:\n    matchLabels: {{app: m}}\n    pdGroup:\n      \
         groupKey: group\n      prefillLabels: {{role: prefill}}\n      decodeLabels: {{role: decode}}\n  \
         workloadPort: {{port: 8000}}\n{extra}  endpoints:\n"
    );
    for (name, address, port) in pods {
        let role = if name.starts_with('p') {
            "prefill"
        } else {
            "decode"
        };
        let group = &name[1..2];
        manifest.push_str(&format!(
            "  - {{name: {name}, address: {address}, port: {port}, labels: {{group: g{group}, role: {role}}}}}\n"
        ));
    }
    manifest
}

/// A setup with these pods.
pub(crate) fn with(engine: &str, pods: &[(&str, &Pod)], extra: &str) -> Setup {
    let at: Vec<_> = pods
        .iter()
        .map(|(name, pod)| (*name, "127.0.0.1", pod.port()))
        .collect();
    setup().manifest("server.yaml", &manifest(engine, &at, extra))
}

/// The lines of a spec that choose a connector.
pub(crate) fn connector(name: &str) -> String {
    format!("  kvConnector: {{type: {name}}}\n")
}

/// Two pairs, of which the first request makes one the first choice of the next.
pub(crate) struct Pairs {
    pub(crate) router: Router,
    pub(crate) prefill: [Pod; 2],
    pub(crate) decode: [Pod; 2],
}

impl Pairs {
    pub(crate) async fn start(engine: &str, extra: &str) -> Self {
        let (prefill, decode): ([Pod; 2], [Pod; 2]) = (Pod::several().await, Pod::several().await);
        let [p0, p1] = &prefill;
        let [d0, d1] = &decode;
        let pods = [("p0", p0), ("d0", d0), ("p1", p1), ("d1", d1)];
        let router = with(engine, &pods, extra).start().await;
        Self {
            router,
            prefill,
            decode,
        }
    }

    /// Lets a pair serve the first half of [`Self::long`]; returns its number. It is asked first for the whole.
    pub(crate) async fn favourite(&self) -> usize {
        let half = completion(&text(1, 512));
        assert_eq!(self.router.post(COMPLETIONS, &half).await.status, 200);
        let first = usize::from(self.decode[0].seen().is_empty());
        until("both pods are recorded", async || {
            let scores = self.scores(&half).await;
            let both = [format!("p{first}"), format!("d{first}")];
            both.iter().all(|pod| scores[pod] == 100).then_some(())
        })
        .await;
        first
    }

    /// A request of 16 blocks, the first eight of which the favourite has.
    pub(crate) fn long() -> String {
        completion(&(text(1, 512) + &text(2, 512)))
    }

    /// prefix-cache scores by endpoint.
    pub(crate) async fn scores(&self, body: &str) -> BTreeMap<String, u64> {
        scores(&self.router, body).await
    }

    /// How many requests each pod got: p0, p1, d0, d1.
    pub(crate) fn asked(&self) -> [usize; 4] {
        let [p0, p1] = &self.prefill;
        let [d0, d1] = &self.decode;
        [p0, p1, d0, d1].map(|pod| pod.seen().len())
    }

    /// Waits until no request is in flight on any pod.
    pub(crate) async fn quiet(&self) {
        until("in-flight counts are back at 0", async || {
            in_flight(&self.router)
                .await
                .values()
                .all(|n| *n == 0)
                .then_some(())
        })
        .await;
    }
}

/// prefix-cache scores of a completion by endpoint.
pub(crate) async fn scores(router: &Router, body: &str) -> BTreeMap<String, u64> {
    let plan = router.explain(COMPLETIONS, body).await;
    let candidates = plan["candidates"].as_array().expect("candidates");
    let score = |c: &Value| Some((endpoint(&c["pod"]), c["scores"]["prefix-cache"].as_u64()?));
    candidates.iter().filter_map(score).collect()
}

/// Requests in flight by endpoint.
pub(crate) async fn in_flight(router: &Router) -> BTreeMap<String, u64> {
    let page = router.debug("pods").await;
    let count = |p: &Value| {
        (
            endpoint(&p["name"]),
            p["inFlight"].as_u64().expect("a count"),
        )
    };
    page["pods"]
        .as_array()
        .expect("pods")
        .iter()
        .map(count)
        .collect()
}

/// `p0` of `default/m:p0`.
pub(crate) fn endpoint(name: &Value) -> String {
    let name = name.as_str().expect("a name");
    name.rsplit(':').next().unwrap_or(name).to_owned()
}
