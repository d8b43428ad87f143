//! Gauges of each pod, read from the snapshot when the page is asked for: a pod that is gone leaves no series behind.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use routing::fleet::{Fleet, Pod};
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
        )?;
        // A pod whose reading is too old is unknown, not idle: no value is better than a wrong one.
        gauges(
            &mut encoder,
            "pod_waiting_requests",
            "Requests in the engine's waiting queue, as last read",
            pods().filter_map(|pod| Some((pod, pod.load.known()?.waiting))),
        )
    }
}

fn gauges<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a Pod, u32)>,
) -> Result<(), fmt::Error> {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (pod, value) in values {
        // Not `pod`: that label is the router's own pod where Prometheus finds its targets in a cluster.
        let labels = [("backend_pod", pod.name.as_str())];
        family
            .encode_family(&labels)?
            .encode_gauge(&i64::from(value))?;
    }
    Ok(())
}
