//! Figures of the process itself, under the names that every Prometheus client library uses.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Clock ticks a second in /proc; 100 on every Linux that has ABI compatibility (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Bytes of a page as /proc/self/statm counts them on x86-64 and on arm64 with 4 KiB pages.
const PAGE: u64 = 4096;

pub(super) fn register(registry: &mut Registry) {
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64());
    registry.register_collector(Box::new(Process { started }));
}

#[derive(Debug)]
struct Process {
    started: f64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, value: f64| {
            let metric = ConstGauge::new(value);
            let metric_encoder =
                encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(metric_encoder)
        };
        gauge(
            "process_start_time_seconds",
            "Start of the process, Unix time",
            self.started,
        )?;
        if let Some((virtual_bytes, resident)) = memory() {
            gauge("process_resident_memory_bytes", "Resident memory", resident)?;
            gauge(
                "process_virtual_memory_bytes",
                "Virtual memory",
                virtual_bytes,
            )?;
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            gauge(
                "process_open_fds",
                "Open file descriptors",
                open.count() as f64,
            )?;
        }
        if let Some(seconds) = cpu_seconds() {
            let metric = ConstCounter::new(seconds);
            let metric_encoder = encoder.encode_descriptor(
                "process_cpu_seconds",
                "CPU time, user and system",
                None,
                metric.metric_type(),
            )?;
            metric.encode(metric_encoder)?;
        }
        Ok(())
    }
}

fn memory() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').map(|n| n.parse::<u64>().ok());
    Some((
        (pages.next()?? * PAGE) as f64,
        (pages.next()?? * PAGE) as f64,
    ))
}

fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The command name may hold blanks; the fields after its closing parenthesis do not.
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / TICKS_PER_SECOND)
}
