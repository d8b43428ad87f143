//! Where models and pods come from: a directory or a cluster, and from there on the same way.

use crate::flags::{ConfigSource, Serve};
use anyhow::Context;
use control::resources::claims_without_auth;
use control::{ClusterOptions, ClusterSource, FileSource, Objects, Problem, snapshot};
use proxy::{App, scrape};
use routing::fleet::PodIds;
use std::path::Path;
use std::sync::Arc;

/// Starts to follow the source, and says what is known of it so far.
pub(crate) async fn start(flags: &Serve, app: &Arc<App>) -> anyhow::Result<String> {
    match flags.config_source {
        ConfigSource::File => start_files(flags, app),
        ConfigSource::Kubernetes => start_cluster(flags, app).await,
    }
}

/// The first reading must be valid: a mistake is better found before the first request than after it.
fn start_files(flags: &Serve, app: &Arc<App>) -> anyhow::Result<String> {
    let (source, objects) = FileSource::open(&flags.config_dir);
    let objects = objects.map_err(|problems| invalid(&flags.config_dir, &problems))?;
    objects.warnings.iter().for_each(|w| tracing::warn!("{w}"));
    let mut publisher = Publisher::new(app);
    publisher.publish(&objects);
    app.metrics.config_source_up.set(1);
    tokio::spawn(scrape::run(Arc::clone(app)));
    let follower = Arc::clone(app);
    tokio::spawn(source.watch(flags.config_sync_period, move |change| {
        follower
            .metrics
            .config_source_up
            .set(i64::from(change.is_ok()));
        if let Ok(objects) = change {
            publisher.publish(&objects);
        }
    }));
    Ok(format!(
        "{} model servers, {} model routes from {}",
        objects.servers.len(),
        objects.routes.len(),
        flags.config_dir.display(),
    ))
}

/// The cluster need not answer yet; until it has, the router is not ready.
async fn start_cluster(flags: &Serve, app: &Arc<App>) -> anyhow::Result<String> {
    let options = ClusterOptions {
        namespace: flags.namespace.clone().filter(|n| !n.is_empty()),
        statuses: flags.status,
        qps: flags.kube_api_qps,
        burst: flags.kube_api_burst,
    };
    let source = ClusterSource::connect(options).await.context(
        "--config-source=kubernetes (--config-source=file --config-dir=DIR serves without a cluster)",
    )?;
    let server = source.server().to_string();
    let (mut publisher, gauge) = (Publisher::new(app), app.metrics.config_source_up.clone());
    let mut first = true;
    let on_objects = move |objects: Objects| {
        publisher.publish(&objects);
        // Ready is who has asked every pod of the first snapshot once.
        if std::mem::take(&mut first) {
            tokio::spawn(scrape::run(Arc::clone(&publisher.app)));
        }
    };
    tokio::spawn(source.run(on_objects, move |up| {
        gauge.set(i64::from(up));
    }));
    Ok(format!("waiting for the cluster at {server}"))
}

/// Makes new snapshots the one that requests see.
struct Publisher {
    app: Arc<App>,
    ids: PodIds,
    /// It was said that tokens which sessions are made of are not looked at.
    said: bool,
}

impl Publisher {
    fn new(app: &Arc<App>) -> Self {
        Self {
            app: Arc::clone(app),
            ids: PodIds::default(),
            said: false,
        }
    }

    fn publish(&mut self, objects: &Objects) {
        if !self.said
            && self.app.auth.is_none()
            && let Some(problem) = claims_without_auth(objects).first()
        {
            tracing::warn!("{problem}");
            self.said = true;
        }
        let fleet = snapshot::build(objects, &self.app.fleet(), &self.ids);
        self.app.adopt(Arc::new(fleet));
    }
}

fn invalid(dir: &Path, problems: &[Problem]) -> anyhow::Error {
    problems.iter().for_each(|p| tracing::error!("{p}"));
    anyhow::anyhow!(
        "the manifests in {} are not valid: {} problems",
        dir.display(),
        problems.len()
    )
}
