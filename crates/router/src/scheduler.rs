//! From the routerConfiguration file to what is built from it, with the original's messages.

use crate::flags::{ConfigSource, DEFAULT_ROUTER_CONFIG};
use anyhow::Context;
use control::router_config::{AuthConfig, ConfigError, SessionStore};
use control::{Problem, RouterConfig, Severity};
use proxy::doctor::StartWarning;
use routing::schedule::{Scheduler, SchedulerConfig, Warning};
use std::path::Path;
use std::sync::Arc;

/// What the routerConfiguration says.
#[derive(Debug)]
pub(crate) struct Configured {
    /// With its plugins and nothing recorded.
    pub(crate) scheduler: Scheduler,
    /// Whose tokens are accepted, if tokens are looked at.
    pub(crate) auth: Option<AuthConfig>,
    /// Where bindings of sessions are kept.
    pub(crate) session_store: SessionStore,
    /// What was warned of.
    pub(crate) warnings: Vec<StartWarning>,
}

/// Reads the configuration; warnings go to the log.
///
/// Before manifests a file that is missing at the default path means the chart's defaults: whoever starts the router by
/// hand need not write one. A file that was named must be there, and so must the ConfigMap of a cluster.
pub(crate) fn load(path: &Path, source: ConfigSource) -> anyhow::Result<Configured> {
    let by_hand = source == ConfigSource::File && path == Path::new(DEFAULT_ROUTER_CONFIG);
    if by_hand && !path.exists() {
        tracing::warn!(
            "{} is not there: using the default plugins and arguments",
            path.display()
        );
        return Ok(Configured {
            scheduler: Scheduler::new(&SchedulerConfig::default()),
            auth: None,
            session_store: SessionStore::default(),
            warnings: Vec::new(),
        });
    }
    let (config, scheduler, warnings) = parse(path)?;
    Ok(Configured {
        scheduler: Scheduler::new(&scheduler),
        auth: config.auth,
        session_store: config.session_store,
        warnings,
    })
}

/// The scheduler's part of a configuration; warnings go to the log.
pub(crate) fn read(path: &Path) -> anyhow::Result<SchedulerConfig> {
    Ok(read_whole(path)?.1)
}

/// A configuration and the scheduler's part of it; warnings go to the log.
pub(crate) fn read_whole(path: &Path) -> anyhow::Result<(RouterConfig, SchedulerConfig)> {
    let (config, scheduler, _) = parse(path).with_context(|| path.display().to_string())?;
    Ok((config, scheduler))
}

fn parse(path: &Path) -> anyhow::Result<(RouterConfig, SchedulerConfig, Vec<StartWarning>)> {
    let config = RouterConfig::load(path).context("failed to parse router config")?;
    let (scheduler, warnings) =
        SchedulerConfig::from_value(&config.scheduler).context("failed to Load Scheduler")?;
    let told = |kind: &str, text: String| {
        tracing::warn!("{text}");
        let kind = kind.to_owned();
        StartWarning { kind, text }
    };
    let others = config.warnings.iter();
    let mut kept: Vec<_> = others
        .map(|w| told("configuration", w.to_string()))
        .collect();
    kept.extend(
        warnings
            .iter()
            .map(|w| told(w.kind.as_str(), w.to_string())),
    );
    Ok((config, scheduler, kept))
}

/// What `validate` has to say about a configuration.
#[derive(Debug)]
pub(crate) struct Checked {
    /// What is wrong.
    pub(crate) findings: Vec<Problem>,
    /// Whether it has an `auth`; unknown of one that cannot be read.
    auth: Option<bool>,
}

impl Checked {
    /// Whether a router with this configuration is known to look at no tokens.
    pub(crate) fn has_no_auth(&self) -> bool {
        self.auth == Some(false)
    }
}

/// Checks the configuration for `validate`.
pub(crate) fn check(path: &Path) -> Checked {
    let file: Arc<str> = path.display().to_string().into();
    let config = match RouterConfig::load(path) {
        Ok(config) => config,
        Err(error) => {
            let findings = match error {
                ConfigError::Unmarshal(problems) => problems.0,
                error @ ConfigError::Read { .. } => vec![Problem {
                    file,
                    line: None,
                    field: String::new(),
                    message: error.to_string(),
                    severity: Severity::Error,
                }],
            };
            return Checked {
                findings,
                auth: None,
            };
        }
    };
    let problem = |path: &str, message: String, severity| Problem {
        file: Arc::clone(&file),
        line: config.line_of(path),
        field: path.to_owned(),
        message,
        severity,
    };
    let mut findings = config.warnings.clone();
    match SchedulerConfig::from_value(&config.scheduler) {
        Ok((_, warnings)) => {
            let warning = |w: &Warning| problem(&w.path, w.to_string(), Severity::Warning);
            findings.extend(warnings.iter().map(warning));
        }
        Err(error) => findings.push(problem(
            error.path(),
            format!("failed to Load Scheduler: {error}"),
            Severity::Error,
        )),
    }
    Checked {
        findings,
        auth: Some(config.auth.is_some()),
    }
}
