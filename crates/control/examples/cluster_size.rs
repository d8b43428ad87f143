//! What 10,000 pods of a cluster cost: memory while they are known, and time of a snapshot, selected and not.
//!
//! `cargo run --release -p control --example cluster_size`. Linux only: it reads `/proc/self/statm`.
#![allow(clippy::print_stdout, reason = "this program is for its output")]

use control::resources::{ModelServer, Pod};
use control::{Objects, files, snapshot};
use routing::fleet::{Fleet, ObjectName, PodIds};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

const PODS: usize = 10_000;
const SERVERS: usize = 100;
const PAGE_BYTES: u64 = 4096;

fn resident_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .ok_or("no resident pages in statm")?
        .parse()?;
    Ok(pages * PAGE_BYTES)
}

/// A pod with the labels that a Deployment of a chart gives it.
fn pod(n: usize) -> Arc<Pod> {
    let labels = [
        ("app", format!("m{}", n % SERVERS)),
        ("app.kubernetes.io/name", "engine".to_owned()),
        (
            "app.kubernetes.io/instance",
            format!("release-{}", n % SERVERS),
        ),
        ("app.kubernetes.io/managed-by", "Helm".to_owned()),
        ("helm.sh/chart", "engine-1.2.3".to_owned()),
        ("pod-template-hash", format!("7d9c8b{n:05}")),
    ];
    Arc::new(Pod {
        name: ObjectName::new(
            "default",
            &format!("release-{}-7d9c8b6f5-{n:05}", n % SERVERS),
        ),
        uid: format!("11111111-2222-3333-4444-{n:012}").into(),
        ip: format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255).into(),
        labels: labels.map(|(k, v)| (k.to_owned(), v)).into(),
        ready: true,
    })
}

fn servers() -> Result<Vec<Arc<ModelServer>>, Box<dyn std::error::Error>> {
    let mut text = String::new();
    for n in 0..SERVERS {
        write!(
            text,
            "---\napiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelServer\nmetadata: {{name: m{n}}}\nspec:\n  \
             inferenceEngine: vLLM\n  workloadSelector: {{matchLabels: {{app: m{n}}}}}\n  workloadPort: {{port: 8000}}\n  \
             endpoints: []\n"
        )?;
    }
    let dir = std::env::temp_dir().join(format!("cluster-size-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    std::fs::write(dir.join("servers.yaml"), text)?;
    let objects = files::load(&dir);
    std::fs::remove_dir_all(&dir)?;
    objects
        .map(|objects| objects.servers)
        .map_err(|problems| format!("{problems:?}").into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = servers()?;
    let ids = PodIds::default();
    let before = resident_bytes()?;
    let mut objects = Objects {
        pods: (0..PODS).map(pod).collect(),
        ..Objects::default()
    };
    let known = resident_bytes()? - before;
    println!(
        "{PODS} pods known: {known} bytes, {} each",
        known / PODS as u64
    );

    let time = |what: &str, objects: &Objects, previous: &Fleet| {
        let begun = Instant::now();
        let fleet = snapshot::build(objects, previous, &ids);
        println!("{what}: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
        fleet
    };
    let empty = time("snapshot without a server", &objects, &Fleet::default());
    objects.servers = servers;
    let first = time("first snapshot of 100 servers", &objects, &empty);
    let selected = resident_bytes()? - before;
    println!(
        "{PODS} pods selected: {selected} bytes, {} each",
        selected / PODS as u64
    );
    let second = time("snapshot with nothing new", &objects, &first);
    objects.pods[7] = pod(PODS);
    time("snapshot with one new pod", &objects, &second);
    Ok(())
}
