//! Following a directory of manifests.

use crate::files::{self, Reading};
use crate::problem::Problem;
use crate::resources::Objects;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// How long a changed directory must stay as it is before it is believed. Files that are being written, and the links
/// of a ConfigMap that is being swapped, are seen half done otherwise; half a manifest can be a valid one with fewer
/// endpoints.
const SETTLE: Duration = Duration::from_millis(50);

/// Readings that may differ in a row before the change is left to the next period.
const SETTLE_TRIES: u32 = 20;

/// The file source: a directory, and what is known of its content.
#[derive(Debug)]
pub struct FileSource {
    dir: Arc<PathBuf>,
    fingerprint: u64,
    /// What the log was last told; empty while all is well.
    reported: Vec<Problem>,
}

impl FileSource {
    /// Reads the directory for the first time. Blocks.
    ///
    /// The problems of this first reading are the caller's to report.
    ///
    /// # Errors
    /// Everything that is wrong; see [`crate::files::load`]. The source is not lost: [`Self::watch`] may go on from a
    /// directory that is not valid yet.
    pub fn open(dir: impl Into<PathBuf>) -> (Self, Result<Objects, Vec<Problem>>) {
        let dir = dir.into();
        let reading = files::read(&dir);
        let objects = files::parse(&reading);
        let reported = match &objects {
            Ok(objects) => objects.warnings.clone(),
            Err(problems) => problems.clone(),
        };
        (
            Self {
                dir: Arc::new(dir),
                fingerprint: reading.fingerprint(),
                reported,
            },
            objects,
        )
    }

    /// Looks at the directory every `period` and calls `on_change` whenever its content is another than before, with
    /// the new objects or with what is wrong with them. Never returns; dropping the future ends it.
    ///
    /// Problems are logged here, each set of them once, and so is the recovery. Polling works on every file system, and
    /// an unchanged directory costs no more than reading it.
    pub async fn watch(
        mut self,
        period: Duration,
        mut on_change: impl FnMut(Result<Objects, Vec<Problem>>),
    ) {
        let period = period.max(Duration::from_millis(1));
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Some(result) = self.poll().await {
                self.report(&result);
                on_change(result);
            }
        }
    }

    /// The objects, if the content is another than the last one seen.
    async fn poll(&mut self) -> Option<Result<Objects, Vec<Problem>>> {
        let mut before = self.fingerprint;
        for _ in 0..SETTLE_TRIES {
            let reading = self.read().await?;
            let now = reading.fingerprint();
            if now == self.fingerprint {
                return None;
            }
            if now == before {
                self.fingerprint = now;
                return tokio::task::spawn_blocking(move || files::parse(&reading))
                    .await
                    .ok();
            }
            before = now;
            sleep(SETTLE).await;
        }
        None
    }

    async fn read(&self) -> Option<Reading> {
        let dir = Arc::clone(&self.dir);
        tokio::task::spawn_blocking(move || files::read(&dir))
            .await
            .ok()
    }

    fn report(&mut self, result: &Result<Objects, Vec<Problem>>) {
        let dir = self.dir.display();
        let problems = match result {
            Ok(objects) => &objects.warnings,
            Err(problems) => problems,
        };
        if *problems != self.reported {
            problems.iter().for_each(Problem::log);
        }
        match result {
            Err(_) => tracing::error!(
                "manifests in {dir} are not valid; the last good ones stay in force"
            ),
            Ok(objects) => tracing::info!(
                "manifests in {dir} are in force: {} model servers, {} model routes",
                objects.servers.len(),
                objects.routes.len()
            ),
        }
        self.reported.clone_from(problems);
    }
}
