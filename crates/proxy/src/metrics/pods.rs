//! Gauges of each pod, read from the snapshot when the page is asked for: a pod that is gone leaves no series behind.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use routing::fleet::{Fleet, Pod};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The families of this file, for one page.
pub(super) fn registry(fleet: Arc<Fleet>) -> Registry {
    let mut registry = Registry::with_prefix("kthena_router");
    registry.register_collector(Box::new(Pods(fleet)));
    registry
}

#[derive(Debug)]
struct Pods(Arc<Fleet>);

impl Collector for Pods {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let pods = self.0.pods();
        let pods = || pods.values().map(|pod| &***pod);
        gauges(
            &mut encoder,
            "pod_in_flight_requests",
            "Requests that this router has given to the pod and that have not ended",
            pods().map(|pod| (pod, pod.load.in_flight())),
            u32::saturating_add,
        )?;
        // A pod whose reading is too old is unknown, not idle: no value is better than a wrong one.
        gauges(
            &mut encoder,
            "pod_waiting_requests",
            "Requests in the engine's waiting queue, as last read",
            pods().filter_map(|pod| Some((pod, pod.load.known()?.waiting))),
            u32::max,
        )?;
        let cached = || pods().filter_map(|pod| Some((pod, pod.load.cache_tokens()?)));
        counters(
            &mut encoder,
            "pod_prefix_cache_queried_tokens",
            "Prompt tokens that the engine has looked up in its cache since the router first read its metrics",
            cached().map(|(pod, tokens)| (pod, tokens.queried)),
        )?;
        counters(
            &mut encoder,
            "pod_prefix_cache_hit_tokens",
            "Those that it has found",
            cached().map(|(pod, tokens)| (pod, tokens.hit)),
        )
    }
}

/// One series a name, as for [`gauges`]: the sum.
fn counters<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a Pod, u64)>,
) -> Result<(), fmt::Error> {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for (pod, value) in values {
        let sum = by_name.entry(pod.name.as_str()).or_default();
        *sum = sum.saturating_add(value);
    }
    if by_name.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (name, value) in by_name {
        let labels = [("backend_pod", name)];
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// One series a name: a pod that servers ask for on several ports is as many engines under one name, whose values `merge`
/// makes one.
fn gauges<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a Pod, u32)>,
    merge: fn(u32, u32) -> u32,
) -> Result<(), fmt::Error> {
    let mut by_name: BTreeMap<&str, u32> = BTreeMap::new();
    for (pod, value) in values {
        by_name
            .entry(pod.name.as_str())
            .and_modify(|known| *known = merge(*known, value))
            .or_insert(value);
    }
    if by_name.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (name, value) in by_name {
        // Not `pod`: that label is the router's own pod where Prometheus finds its targets in a cluster.
        let labels = [("backend_pod", name)];
        family
            .encode_family(&labels)?
            .encode_gauge(&i64::from(value))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use routing::fleet::{Endpoint, Engine, Gauges, ModelServer, ObjectName, PodId, TrafficPolicy};

    fn pod(id: u32, port: u16, waiting: u32) -> Arc<Pod> {
        let pod = Pod {
            id: PodId(id),
            name: ObjectName::new("default", "a"),
            uid: None,
            endpoint: Endpoint {
                host: "h".into(),
                port,
            },
            engine: Engine::Vllm,
            labels: BTreeMap::new(),
            load: Arc::default(),
        };
        let gauges = Gauges {
            waiting,
            ..Gauges::default()
        };
        pod.load.publish(&gauges, 1);
        Arc::new(pod)
    }

    #[test]
    fn g4_a_pod_on_two_ports_is_one_series() {
        let pods = vec![pod(0, 8000, 3), pod(1, 8001, 7)];
        let _in_flight = [pods[0].begin(), pods[0].begin(), pods[1].begin()];
        let server = ModelServer::new(
            ObjectName::new("default", "m"),
            None,
            Engine::Vllm,
            TrafficPolicy::default(),
            serde_json::Value::Null,
            pods,
        );
        let fleet = Fleet::new(vec![Arc::new(server)], Vec::new());
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry(Arc::new(fleet))).unwrap();
        let series: Vec<_> = page.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(
            series,
            [
                "kthena_router_pod_in_flight_requests{backend_pod=\"default/a\"} 3",
                "kthena_router_pod_waiting_requests{backend_pod=\"default/a\"} 7",
            ]
        );
    }
}
