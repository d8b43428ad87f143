//! Following a directory, in paused time.

#![allow(clippy::unwrap_used, reason = "a helper of tests")]

mod common;

use common::{Manifests, server};
use control::{FileSource, Objects, Problem};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, timeout};

type Change = Result<Objects, Vec<Problem>>;

const PERIOD: Duration = Duration::from_secs(10);

fn watch(dir: &Path) -> (Change, UnboundedReceiver<Change>) {
    let (source, first) = FileSource::open(dir);
    let (sender, changes) = mpsc::unbounded_channel();
    tokio::spawn(source.watch(PERIOD, move |change| {
        let _ = sender.send(change);
    }));
    (first, changes)
}

async fn quiet(changes: &mut UnboundedReceiver<Change>) -> bool {
    timeout(10 * PERIOD, changes.recv()).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_change_is_seen_within_the_period_and_an_unchanged_directory_is_quiet() {
    let dir = Manifests::new(&server("a", &[]));
    let (first, mut changes) = watch(dir.path());
    assert_eq!(first.unwrap().servers.len(), 1);
    assert!(quiet(&mut changes).await);

    dir.write("b.yaml", &server("b", &[]));
    let start = Instant::now();
    assert_eq!(changes.recv().await.unwrap().unwrap().servers.len(), 2);
    assert!(
        start.elapsed() <= PERIOD + Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    assert!(quiet(&mut changes).await);
}

#[tokio::test(start_paused = true)]
async fn an_invalid_directory_is_reported_once_and_so_is_its_recovery() {
    let good = server("a", &[]);
    let dir = Manifests::new(&good);
    let (_, mut changes) = watch(dir.path());
    dir.write("a.yaml", "kind: [");
    let problems = changes.recv().await.unwrap().unwrap_err();
    assert!(
        problems[0].to_string().contains("a.yaml:1: "),
        "{problems:?}"
    );
    assert!(quiet(&mut changes).await);

    dir.write("a.yaml", &good);
    assert!(changes.recv().await.unwrap().is_ok());
    assert!(quiet(&mut changes).await);
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_vanishes_is_reported_and_taken_up_again() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("manifests");
    let (first, mut changes) = watch(&dir);
    assert!(first.is_err());
    assert!(quiet(&mut changes).await);

    std::fs::create_dir(&dir).unwrap();
    assert!(changes.recv().await.unwrap().is_ok());
    std::fs::remove_dir(&dir).unwrap();
    let problems = changes.recv().await.unwrap().unwrap_err();
    assert!(
        problems[0]
            .to_string()
            .contains("manifests: cannot read the directory: "),
        "{problems:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_is_being_written_is_not_believed() {
    let dir = Manifests::new(&server(
        "s",
        &["{name: a, address: h}", "{name: b, address: h}"],
    ));
    let (_, mut changes) = watch(dir.path());
    // Half of what is to come is a valid manifest with fewer endpoints, and it stands there when the period ends.
    dir.write("a.yaml", &server("s", &["{name: a, address: h}"]));
    tokio::time::sleep(PERIOD + Duration::from_millis(25)).await;
    dir.write(
        "a.yaml",
        &server(
            "s",
            &[
                "{name: a, address: h}",
                "{name: b, address: h}",
                "{name: c, address: h}",
            ],
        ),
    );
    assert_eq!(
        changes.recv().await.unwrap().unwrap().servers[0].pods.len(),
        3
    );
    assert!(quiet(&mut changes).await);
}
