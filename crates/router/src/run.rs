//! Serving: from flags and files to listeners, and the way down.

use crate::env::Environment;
use crate::flags::{ConfigSource, Serve};
use crate::scheduler::{self, Configured};
use crate::signals::Signals;
use crate::sources;
use crate::webhook;
use anyhow::{Context, bail};
use control::router_config::SessionStore;
use proxy::access_log::LogWriter;
use proxy::auth::Auth;
use proxy::lifecycle::Phase;
use proxy::metrics::Metrics;
use proxy::recording::Recorder;
use proxy::sticky::Sessions;
use proxy::tls::{Certificate, CertificateFiles, Tls};
use proxy::{App, debug, front, upkeep};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Serves until a signal ends it.
pub(crate) fn run(flags: Serve) -> anyhow::Result<ExitCode> {
    flags.absent.check()?;
    if let Some(remark) = flags.klog.remark() {
        tracing::warn!("{remark}");
    }
    if flags.tls_cert.is_some() != flags.tls_key.is_some() {
        bail!("tls-cert and tls-key must be specified together");
    }
    let environment = Environment::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(serve(flags, environment))
}

async fn serve(flags: Serve, environment: Environment) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let app = build(&flags, &environment).await?;
    let tls = inference_tls(&flags).await?;
    let listeners = Listeners::bind(&flags).await?;
    let source = sources::start(&flags, &app).await?;
    tracing::info!(
        "serving on port {}, metrics on {}, debug on 127.0.0.1:{}: {source}",
        flags.port,
        flags.metrics_port,
        flags.debug_port,
    );

    if let Some(auth) = app.auth.clone() {
        tokio::spawn(async move { auth.follow().await });
    }
    tokio::spawn(upkeep::sweep(Arc::clone(&app)));
    listeners.serve(&app, tls, &flags, &environment);

    signals.next().await;
    Ok(wind_down(&app, environment.drain_timeout, &mut signals).await)
}

async fn build(flags: &Serve, environment: &Environment) -> anyhow::Result<Arc<App>> {
    // Before it is read: a change in between is one that waits for a restart.
    let configuration = debug::ConfigurationFile::noted(flags.router_config.clone());
    let Configured {
        scheduler,
        auth,
        session_store,
        warnings,
    } = scheduler::load(&flags.router_config, flags.config_source)?;
    let metrics = Metrics::new();
    let log = match &environment.access_log {
        None => None,
        Some((format, output)) => {
            let writer = LogWriter::start(output, metrics.access_log_lost.clone())
                .with_context(|| format!("cannot open the access log {output:?}"))?;
            Some((*format, writer))
        }
    };
    let recorder = flags.insight.recording().map(|recording| {
        Recorder::start(&recording, metrics.record_lost.clone()).with_context(|| {
            format!(
                "cannot open {} (--record-requests)",
                recording.file.display()
            )
        })
    });
    let recorder = recorder.transpose()?;
    let mut settings = environment.settings();
    flags.insight.apply(&mut settings);
    let mut app = App::new(settings, scheduler, metrics, log)
        .with_warnings(warnings)
        .with_configuration(configuration);
    if let Some(recorder) = recorder {
        app = app.with_recorder(recorder);
    }
    if let SessionStore::Redis { address } = &session_store {
        let sessions = Sessions::in_redis(address, &environment.redis).await;
        app = app.with_sessions(sessions.map_err(anyhow::Error::msg)?);
    }
    if let Some(auth) = auth {
        let auth = Auth::new(auth.issuer, auth.audiences, &auth.jwks_uri);
        app = app.with_auth(Arc::new(auth.map_err(anyhow::Error::msg)?));
    }
    Ok(Arc::new(app))
}

/// TLS for the inference port, if it is asked for, with a certificate that follows its files.
async fn inference_tls(flags: &Serve) -> anyhow::Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (flags.tls_cert.clone(), flags.tls_key.clone()) else {
        return Ok(None);
    };
    let files = CertificateFiles { certificate, key };
    let served = Arc::new(Certificate::default());
    let content = files.load(&served).await.context("--tls-cert, --tls-key")?;
    let tls = Tls::new(Arc::clone(&served))?;
    tokio::spawn(files.follow(content, served, flags.config_sync_period));
    Ok(Some(tls))
}

/// The ports, bound before anything else is promised.
struct Listeners {
    inference: TcpListener,
    metrics: TcpListener,
    debug: TcpListener,
    /// With a cluster only.
    webhook: Option<TcpListener>,
}

impl Listeners {
    async fn bind(flags: &Serve) -> anyhow::Result<Self> {
        let in_cluster = flags.config_source == ConfigSource::Kubernetes;
        let webhook = &flags.webhook;
        Ok(Self {
            webhook: match in_cluster && webhook.enable_webhook {
                true => Some(bind("--webhook-port", webhook.webhook_port, false).await?),
                false => None,
            },
            inference: bind("--port", flags.port, false).await?,
            metrics: bind("--metrics-port", flags.metrics_port, false).await?,
            debug: bind("--debug-port", flags.debug_port, true).await?,
        })
    }

    fn serve(self, app: &Arc<App>, tls: Option<Tls>, flags: &Serve, environment: &Environment) {
        if let Some(listener) = self.webhook {
            let namespace = environment.pod_namespace.clone();
            tokio::spawn(webhook::run(listener, flags.webhook.clone(), namespace));
        }
        tokio::spawn(front::serve_clients(
            Arc::clone(app),
            self.inference,
            tls,
            front::serve,
        ));
        tokio::spawn(front::serve_operators(
            Arc::clone(app),
            self.metrics,
            upkeep::serve_metrics,
        ));
        tokio::spawn(front::serve_operators(
            Arc::clone(app),
            self.debug,
            debug::serve,
        ));
    }
}

async fn bind(flag: &str, port: u16, loopback: bool) -> anyhow::Result<TcpListener> {
    front::listen(port, loopback)
        .await
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("port {port} is already in use; choose another one with {flag}")
            }
            _ => {
                anyhow::Error::new(error).context(format!("cannot listen on port {port} ({flag})"))
            }
        })
}

/// Lets requests under way end. A second signal ends the process at once.
pub(crate) async fn wind_down(app: &App, limit: Duration, signals: &mut Signals) -> ExitCode {
    tracing::info!("draining: no longer ready, waiting up to {limit:?} for requests under way");
    let drained = tokio::select! {
        drained = app.lifecycle.drain(limit) => Some(drained),
        () = signals.next() => None,
    };
    let why = match drained {
        Some(true) => {
            tracing::info!("drained");
            return ExitCode::SUCCESS;
        }
        Some(false) => format!(
            "Drain timeout exceeded after {}s: {} requests still inflight, force-closing",
            limit.as_secs_f64(),
            app.metrics.active.get()
        ),
        None => "second signal: ending at once".to_owned(),
    };
    // What is cut from here on is the router's doing, and says so.
    app.lifecycle.advance(Phase::Cutting);
    tracing::warn!("{why}");
    ExitCode::FAILURE
}
