//! The kinds of the router's own API group.

/// A kind of the router's own API group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A group of pods that serve one model.
    ModelServer,
    /// Which requests go to which servers.
    ModelRoute,
    /// A hosted model outside.
    ExternalModelProvider,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [
        Self::ModelServer,
        Self::ModelRoute,
        Self::ExternalModelProvider,
    ];

    /// Its name, as in the field `kind`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModelServer => "ModelServer",
            Self::ModelRoute => "ModelRoute",
            Self::ExternalModelProvider => "ExternalModelProvider",
        }
    }

    /// Its name in the paths of an API server.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ModelServer => "modelservers",
            Self::ModelRoute => "modelroutes",
            Self::ExternalModelProvider => "externalmodelproviders",
        }
    }
}
