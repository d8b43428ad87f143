//! What can be wrong with a configuration.

use std::fmt;

/// Something to tell the operator that does not stop the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What kind of thing.
    pub kind: WarningKind,
    /// Where, from `scheduler` on, such as `scheduler.plugins.Score.enabled[0]`.
    pub path: String,
    text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Warning {
    pub(in crate::schedule) fn at(self, path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            ..self
        }
    }
}

/// Kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningKind {
    /// A plugin is enabled or configured that does not exist; it is skipped.
    UnknownPlugin,
    /// random is enabled beside other Score plugins; it is skipped.
    RandomAmongOthers,
    /// Arguments of a plugin cannot be read; its defaults are used.
    BadArguments,
    /// A plugin has no argument of this name; it is ignored. Most likely it is misspelled.
    UnknownArgument,
}

impl WarningKind {
    /// Its name, for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownPlugin => "unknown-plugin",
            Self::RandomAmongOthers => "random-among-others",
            Self::BadArguments => "bad-arguments",
            Self::UnknownArgument => "unknown-argument",
        }
    }

    pub(in crate::schedule) fn with(self, text: String) -> Warning {
        Warning {
            kind: self,
            path: String::new(),
            text,
        }
    }
}

/// What stops the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A weight is missing, zero or negative.
    #[error(
        "failed to Unmarshal Plugins: score plugin {plugin:?} must set a weight greater than 0, got {got}"
    )]
    Weight {
        /// Where, from `scheduler` on.
        path: String,
        /// The plugin's name as written.
        plugin: String,
        /// The weight as written; 0 when it is missing.
        got: i64,
    },
    /// A weight is no integer.
    #[error(
        "failed to Unmarshal Plugins: the weight of score plugin {plugin:?} must be an integer, got {got}"
    )]
    WeightKind {
        /// Where, from `scheduler` on.
        path: String,
        /// The plugin's name as written.
        plugin: String,
        /// The weight as written.
        got: String,
    },
    /// The weight factor of least-latency is not within 0..=1.
    #[error(
        "invalid least-latency plugin configuration: TTFTTPOTWeightFactor must be a finite value between 0 and 1, got {got}"
    )]
    LeastLatency {
        /// Where, from `scheduler` on.
        path: String,
        /// The value as written.
        got: String,
    },
    /// A member is of the wrong kind.
    #[error("failed to Unmarshal Plugins: {path} must be {expected}, got {got}")]
    Shape {
        /// Where, from `scheduler` on.
        path: String,
        /// What it must be.
        expected: &'static str,
        /// The value as written.
        got: String,
    },
}

impl ConfigError {
    /// Where, from `scheduler` on.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Weight { path, .. }
            | Self::WeightKind { path, .. }
            | Self::LeastLatency { path, .. }
            | Self::Shape { path, .. } => path,
        }
    }

    /// The same, of arguments that are at this place.
    pub(super) fn within(mut self, args: &str) -> Self {
        if let Self::LeastLatency { path, .. } = &mut self {
            *path = format!("{args}.{path}");
        }
        self
    }
}
