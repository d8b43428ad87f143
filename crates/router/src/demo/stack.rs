//! Engines and a router in this process.

use super::fleet::{fleet, pairs, sessions};
use super::page::Page;
use super::{ENGINES, MODEL};
use anyhow::Context;
use proxy::lifecycle::Phase;
use proxy::metrics::Metrics;
use proxy::{App, Settings, front, scrape, upkeep};
use routing::fleet::PodIds;
use routing::schedule::{Scheduler, SchedulerConfig};
use sim::live::{Disaggregation, LiveEngine, LiveOptions, PdConnector, PdRole};
use sim::load::demo_engine;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What the engines do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// All do everything.
    Alike,
    /// The even ones do prefill, the odd ones decode; two neighbours are a group.
    Pairs,
    /// All do everything, and requests of one session go to one of them.
    Sessions,
}

impl Layout {
    fn part(self, number: u64) -> Option<Disaggregation> {
        let role = match number % 2 {
            0 => PdRole::Prefill,
            _ => PdRole::Decode,
        };
        (self == Self::Pairs).then(|| Disaggregation::new(role, PdConnector::Nixl))
    }
}

/// A running router with its engines. Dropping it ends all.
pub(super) struct Stack {
    pub(super) app: Arc<App>,
    engines: Vec<LiveEngine>,
    inference: SocketAddr,
    metrics: SocketAddr,
    tasks: JoinSet<()>,
}

impl Stack {
    /// Starts everything, shows it on the page, and waits until the router is ready.
    pub(super) async fn start(
        config: SchedulerConfig,
        port: Option<u16>,
        layout: Layout,
        page: &mut Page,
    ) -> anyhow::Result<Self> {
        let mut engines = Vec::with_capacity(ENGINES);
        for seed in 0..ENGINES as u64 {
            let options = LiveOptions {
                model_names: vec![MODEL.to_owned()],
                seed,
                disaggregation: layout.part(seed),
                ..LiveOptions::default()
            };
            engines.push(LiveEngine::start_local(demo_engine(), options).await?);
        }
        let addresses: Vec<_> = engines.iter().map(LiveEngine::address).collect();
        let app = Arc::new(App::new(
            Settings {
                shows_pod: true,
                ..Settings::default()
            },
            Scheduler::new(&config),
            Metrics::new(),
            None,
        ));
        let ids = PodIds::default();
        app.adopt(Arc::new(match layout {
            Layout::Alike => fleet(&addresses, &ids),
            Layout::Pairs => pairs(&addresses, &ids),
            Layout::Sessions => sessions(&addresses, &ids),
        }));

        let (inference, metrics) = (listen(port.unwrap_or(0)).await?, listen(0).await?);
        page.show(&app);
        let mut stack = Self {
            app: Arc::clone(&app),
            engines,
            inference: inference.local_addr()?,
            metrics: metrics.local_addr()?,
            tasks: JoinSet::new(),
        };
        stack.tasks.spawn(front::serve_clients(
            Arc::clone(&app),
            inference,
            None,
            front::serve,
        ));
        stack.tasks.spawn(front::serve_operators(
            Arc::clone(&app),
            metrics,
            upkeep::serve_metrics,
        ));
        stack.tasks.spawn(scrape::run(Arc::clone(&app)));
        stack.tasks.spawn(upkeep::sweep(Arc::clone(&app)));
        let _ = app
            .lifecycle
            .subscribe()
            .wait_for(|phase| *phase == Phase::Serving)
            .await;
        Ok(stack)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.inference)
    }

    pub(super) fn metrics_url(&self) -> String {
        format!("http://{}", self.metrics)
    }

    pub(super) fn engine_addresses(&self) -> Vec<String> {
        self.engines
            .iter()
            .map(|e| e.address().to_string())
            .collect()
    }

    /// Ends engines and router.
    pub(super) async fn stop(mut self, patience: Duration) {
        self.tasks.shutdown().await;
        for engine in self.engines {
            engine.stop(patience).await;
        }
    }
}

/// Binds a port of loopback; 0 takes a free one.
pub(super) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    front::listen(port, true).await.with_context(|| match port {
        0 => "cannot listen on loopback".to_owned(),
        _ => format!("cannot listen on port {port} (--port); leave it out to take a free one"),
    })
}
