//! What is wrong with a manifest, and where.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The manifests cannot be used.
    Error,
    /// Probably a mistake, but the meaning is clear. `validate --strict` refuses it.
    Warning,
    /// Right, but without an effect in this version.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding. Displayed as `file:line: field: message`, without the parts that are unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The file, as the directory was given plus its name.
    pub file: Arc<str>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Path of the field in its document, such as `spec.rules[0].targetModels`; empty for the whole document.
    pub field: String,
    /// What is wrong, in words that read alone. Never holds a value out of a Secret.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
}

impl Problem {
    /// An error about a file as a whole.
    pub(crate) fn of_file(file: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: None,
            field: String::new(),
            message: message.into(),
            severity: Severity::Error,
        }
    }

    /// Whether `validate` refuses the manifests because of it: an error always, a warning only if `strict`.
    #[must_use]
    pub fn refuses(&self, strict: bool) -> bool {
        match self.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Note => false,
        }
    }

    /// Logs it, as loud as it is bad.
    pub(crate) fn log(&self) {
        if self.is_error() {
            tracing::error!("{self}");
        } else if self.severity == Severity::Warning {
            tracing::warn!("{self}");
        } else {
            tracing::info!("{self}");
        }
    }

    /// Whether it makes the manifests unusable.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Sink {
    file: Arc<str>,
    in_cluster: bool,
    found: RefCell<Vec<Problem>>,
    /// Paths of all fields that were asked for.
    #[cfg(test)]
    asked: RefCell<std::collections::BTreeSet<String>>,
}

impl Sink {
    pub(crate) fn new(file: Arc<str>) -> Self {
        Self {
            file,
            in_cluster: false,
            found: RefCell::default(),
            #[cfg(test)]
            asked: RefCell::default(),
        }
    }

    /// Of one object of a cluster, whose kind and name stand in for the file.
    pub(crate) fn of_object(name: Arc<str>) -> Self {
        Self {
            in_cluster: true,
            ..Self::new(name)
        }
    }

    /// Whether the object comes from a cluster, where pods are found by their labels.
    pub(crate) fn in_cluster(&self) -> bool {
        self.in_cluster
    }

    #[cfg(test)]
    pub(crate) fn note_asked(&self, path: &str) {
        self.asked.borrow_mut().insert(path.to_owned());
    }

    /// Paths of all fields that were asked for, whether they were there or not.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> std::collections::BTreeSet<String> {
        self.asked.borrow().clone()
    }

    pub(crate) fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn add(
        &self,
        severity: Severity,
        line: u32,
        field: &str,
        message: impl Into<String>,
    ) {
        self.found.borrow_mut().push(Problem {
            file: Arc::clone(&self.file),
            line: (line > 0).then_some(line),
            field: field.to_owned(),
            message: message.into(),
            severity,
        });
    }

    /// The problems, in the order of the file.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|p| p.line);
        found
    }
}
