//! A task per pod: a pod whose page hangs delays nobody.

use super::list::ModelList;
use super::pod::PodScraper;
use crate::app::App;
use crate::lifecycle::Phase;
use prefix_index::PodId;
use routing::fleet::Pod;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Follows the fleet for ever: starts scraping pods that come, stops for pods that go. When every pod of the first
/// fleet was asked once, well or not, the router is ready.
pub async fn run(app: Arc<App>) {
    let mut tasks: HashMap<PodId, Task> = HashMap::new();
    let (first_round, mut all_asked) = mpsc::channel::<()>(1);
    let mut first_round = Some(first_round);
    loop {
        let fleet = app.fleet();
        let pods = fleet.pods();
        tasks.retain(|id, _| pods.contains_key(id));
        for (id, pod) in pods {
            tasks
                .entry(id)
                .or_insert_with(|| Task::start(&app, pod, first_round.clone()));
        }
        if first_round.take().is_some() {
            // Nothing is ever sent: the channel closes when the last pod has been asked.
            all_asked.recv().await;
            app.lifecycle.advance(Phase::Serving);
        }
        app.fleet_changed.notified().await;
    }
}

/// The scraping of one pod; ends when dropped.
struct Task(AbortHandle);

impl Task {
    fn start(app: &Arc<App>, pod: &Arc<Pod>, first_round: Option<mpsc::Sender<()>>) -> Self {
        let task = scrape_for_ever(Arc::clone(app), Arc::clone(pod), first_round);
        Self(tokio::spawn(task).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The two pages wait for each other in nothing, so that one which hangs spoils nothing of the other.
async fn scrape_for_ever(app: Arc<App>, pod: Arc<Pod>, first_round: Option<mpsc::Sender<()>>) {
    let interval = app.settings.scrape_interval;
    // Ids count up, so multiples of the golden ratio spread the pods evenly over the interval.
    let phase = interval.mul_f64(f64::from(pod.id.0) * 0.618_033_988_749_895 % 1.0);
    let mut scraper = PodScraper::new(&app, &pod);
    let list = ModelList::new(&app, &pod);
    let asked = first_round.clone();
    let metrics = async {
        scraper.scrape().await;
        drop(asked);
        let mut ticks = ticks(phase, interval);
        loop {
            ticks.tick().await;
            scraper.scrape().await;
        }
    };
    let models = async {
        list.read().await;
        drop(first_round);
        let mut ticks = ticks(phase, interval);
        loop {
            ticks.tick().await;
            list.read().await;
        }
    };
    tokio::join!(metrics, models);
}

fn ticks(phase: Duration, interval: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + phase, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
