//! Names of namespaced objects.

use std::fmt;
use std::sync::Arc;

/// `namespace/name`, kept as one shared string so that labels and log lines borrow it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    full: Arc<str>,
    slash: usize,
}

impl ObjectName {
    /// The name of an object. Neither part may hold a slash.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            full: format!("{namespace}/{name}").into(),
            slash: namespace.len(),
        }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.full[..self.slash]
    }

    /// The name without the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.full[self.slash + 1..]
    }

    /// `namespace/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// `namespace/name`, shared.
    #[must_use]
    pub fn shared(&self) -> &Arc<str> {
        &self.full
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}
