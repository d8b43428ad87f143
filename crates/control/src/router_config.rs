//! The `routerConfiguration` of the ConfigMap: the scheduler's plugins, the validation of tokens, and where bindings of
//! sessions are kept.

use crate::fields::Reader;
use crate::node::Node;
use crate::problem::{Problem, Severity, Sink};
use crate::yaml;
use std::path::Path;
use std::sync::Arc;

/// What the router is configured with at its start. There is no reload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouterConfig {
    /// `scheduler` as written, for the scheduler to read; null when absent. The floats `.nan`, `.inf` and `-.inf` are
    /// the strings `NaN`, `+Inf` and `-Inf`.
    pub scheduler: serde_json::Value,
    /// `auth`, when it names a key set: without `jwksUri` tokens are not looked at.
    pub auth: Option<AuthConfig>,
    /// `sessionSticky`: where bindings of sessions to pods are kept.
    pub session_store: SessionStore,
    /// Keys without an effect.
    pub warnings: Vec<Problem>,
    /// The text as read, for its lines.
    read: Option<Node>,
}

/// Where bindings of sessions to pods are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionStore {
    /// `backend: memory`, the default: each router has its own.
    #[default]
    Memory,
    /// `backend: redis`: routers share them.
    Redis {
        /// `redis.address`, as `host:port`.
        address: String,
    },
}

/// Validation of the clients' tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthConfig {
    /// `issuer`: what the claim `iss` must be.
    pub issuer: String,
    /// `audiences`: one of them must be in the claim `aud`.
    pub audiences: Vec<String>,
    /// `jwksUri`: where the issuer's keys are.
    pub jwks_uri: String,
}

/// Why there is no configuration. The caller puts `failed to parse router config: ` in front.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("failed to read config file {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no configuration.
    #[error("failed to Unmarshal routerConfiguration: {0}")]
    Unmarshal(Problems),
}

/// Problems on one line.
#[derive(Debug)]
pub struct Problems(pub Vec<Problem>);

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl RouterConfig {
    /// Reads a file, which holds the routerConfiguration text itself. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, is no YAML, or holds a value of the wrong type.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        match std::fs::read(path) {
            Ok(content) => Self::parse(&content, &name),
            Err(source) => Err(ConfigError::Read { path: name, source }),
        }
    }

    /// Reads a text. `name` is the file's name in messages.
    ///
    /// # Errors
    /// The text is no YAML, or holds a value of the wrong type.
    pub fn parse(content: &[u8], name: &str) -> Result<Self, ConfigError> {
        let sink = Sink::new(Arc::from(name));
        let mut config = Self::default();
        match yaml::documents(content) {
            Ok(documents) => {
                if let Some(first) = documents.first() {
                    config.read(&Reader::root(first, &sink));
                    config.read = Some(first.clone());
                }
                for more in documents.iter().skip(1) {
                    sink.add(
                        Severity::Warning,
                        more.line,
                        "",
                        "only the first document is read",
                    );
                }
            }
            Err(e) => sink.add(Severity::Error, e.line, "", e.message),
        }
        let (errors, warnings): (Vec<_>, _) = sink
            .into_problems()
            .into_iter()
            .partition(Problem::is_error);
        if !errors.is_empty() {
            return Err(ConfigError::Unmarshal(Problems(errors)));
        }
        config.warnings = warnings;
        Ok(config)
    }

    /// Line of a value, from 1, or of the innermost of its parents that is written. The path begins at the root of the
    /// text, such as `scheduler.plugins.Score.enabled[0]`.
    #[must_use]
    pub fn line_of(&self, path: &str) -> Option<u32> {
        let line = self.read.as_ref()?.line_of(path);
        Some(line).filter(|&line| line > 0)
    }

    /// The whole text as YAML, with another `scheduler`. Comments are lost, all other members stay.
    ///
    /// # Errors
    /// None that can come from plain values; the writer's type has one.
    pub fn yaml_with(
        &self,
        scheduler: serde_json::Value,
    ) -> Result<String, serde_saphyr::ser_error::Error> {
        let mut whole = self.read.as_ref().map(Node::to_json).unwrap_or_default();
        if !whole.is_object() {
            whole = serde_json::json!({});
        }
        whole["scheduler"] = scheduler;
        serde_saphyr::to_string(&whole)
    }

    fn read(&mut self, at: &Reader<'_>) {
        let Some(mut fields) = at.object() else {
            return;
        };
        if let Some(scheduler) = fields.optional("scheduler")
            && scheduler.object().is_some()
        {
            self.scheduler = scheduler.to_json();
        }
        self.auth = fields.optional("auth").and_then(|auth| read_auth(&auth));
        if let Some(sticky) = fields.optional("sessionSticky") {
            self.session_store = read_session_store(&sticky).unwrap_or_default();
        }
        fields.finish();
    }
}

fn read_auth(at: &Reader<'_>) -> Option<AuthConfig> {
    let mut fields = at.object()?;
    let mut text = |name| {
        fields
            .optional(name)
            .and_then(|t| t.string())
            .unwrap_or_default()
            .to_owned()
    };
    let issuer = text("issuer");
    let jwks_uri = text("jwksUri");
    let audiences = fields
        .optional("audiences")
        .and_then(|a| a.list(usize::MAX))
        .unwrap_or_default();
    fields.finish();
    if jwks_uri.is_empty() {
        return None;
    }
    if !["https://", "http://"]
        .iter()
        .any(|s| jwks_uri.starts_with(s))
    {
        at.error(format!(
            "jwksUri {jwks_uri:?} must be an https:// or http:// URL"
        ));
    }
    if issuer.is_empty() {
        at.error("issuer is required when jwksUri is set: any token of the key set's owner would pass otherwise");
    }
    let audiences = audiences
        .iter()
        .filter_map(|a| a.string())
        .map(str::to_owned)
        .collect();
    Some(AuthConfig {
        issuer,
        audiences,
        jwks_uri,
    })
}

fn read_session_store(at: &Reader<'_>) -> Option<SessionStore> {
    // The original's messages name the whole path themselves.
    let error = |message: String| at.sink().add(Severity::Error, at.line(), "", message);
    let mut fields = at.object()?;
    let backend = fields
        .optional("backend")
        .map_or(Some(""), |backend| backend.string())?;
    let redis = fields.optional("redis");
    fields.finish();
    let mut address = "";
    if let Some(mut redis) = redis.and_then(|redis| redis.object()) {
        address = redis
            .optional("address")
            .map_or(Some(""), |address| address.string())?;
        redis.finish();
    }
    match backend {
        "" | "memory" => return Some(SessionStore::Memory),
        "redis" => {}
        other => {
            error(format!(
                "sessionSticky.backend {other:?} is invalid (use memory or redis)"
            ));
            return None;
        }
    }
    if address.is_empty() {
        error("sessionSticky.redis.address is required when backend is redis".into());
        return None;
    }
    let port = address
        .rsplit_once(':')
        .map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(1..))) || address.contains('/') || address.contains('@') {
        error(format!(
            "sessionSticky.redis.address {address:?} is invalid (write host:port)"
        ));
        return None;
    }
    Some(SessionStore::Redis {
        address: address.to_owned(),
    })
}
