//! The objects that the router is configured with, each in the words of its custom resource definition.
//!
//! One file per kind: its type, and its reading out of a document with every rule that the CRD and the admission
//! webhook of the cluster mode hold it to.

mod external_provider;
mod kind;
mod meta;
mod model_route;
mod model_server;
mod pod;
mod secret;
mod session_sticky;

pub use external_provider::{AuthScheme, ExternalModelProvider, ProviderAuth, ProviderType};
pub use kind::Kind;
pub use meta::{Meta, Place};
pub use model_route::{ModelRoute, RateLimit, RateUnit};
pub use model_server::{ModelServer, PodSpec};
pub use pod::Pod;
pub use secret::Secret;
pub use session_sticky::claims_without_auth;

use crate::fields::Reader;
use crate::node::Node;
use crate::problem::{Problem, Severity, Sink};
use std::collections::HashMap;
use std::sync::Arc;

/// API version of the router's own kinds.
pub const API_VERSION: &str = "networking.serving.volcano.sh/v1alpha1";

/// The namespace of an object that names none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Every object of a source, checked, and what is worth saying about them although they are valid.
#[derive(Debug, Default)]
pub struct Objects {
    /// Groups of pods.
    pub servers: Vec<Arc<ModelServer>>,
    /// Routes, in no particular order.
    pub routes: Vec<Arc<ModelRoute>>,
    /// Providers outside; they are checked but not served in this version.
    pub providers: Vec<Arc<ExternalModelProvider>>,
    /// Credentials of the providers.
    pub secrets: Vec<Secret>,
    /// Pods of a cluster, which servers select by their labels; none with manifests, whose servers list their endpoints.
    pub pods: Vec<Arc<Pod>>,
    /// Warnings and notes.
    pub warnings: Vec<Problem>,
}

/// Reads one document into `objects`; what is wrong goes to `sink`.
pub(crate) fn read_document(node: &Node, sink: &Sink, objects: &mut Objects) {
    read_object(&Reader::root(node, sink), objects);
}

fn read_object(at: &Reader<'_>, objects: &mut Objects) {
    let Some(mut fields) = at.object() else {
        return;
    };
    let api_version = fields.required("apiVersion");
    let kind = fields.required("kind");
    let (Some(api_version), Some(kind)) = (api_version, kind) else {
        return;
    };
    let (Some(version_text), Some(kind_text)) = (api_version.string(), kind.string()) else {
        return;
    };
    let wanted = match kind_text {
        "Secret" | "List" => "v1",
        own if Kind::ALL.iter().any(|kind| kind.as_str() == own) => API_VERSION,
        _ => {
            kind.error(format!(
                "unknown kind {kind_text:?} (apiVersion {version_text:?}): supported kinds: {}, Secret",
                Kind::ALL.map(Kind::as_str).join(", ")
            ));
            return;
        }
    };
    if version_text != wanted {
        api_version.error(format!(
            "unknown apiVersion {version_text:?} of kind {kind_text}: supported: {wanted:?}"
        ));
        return;
    }
    match kind_text {
        "ModelServer" => objects
            .servers
            .extend(model_server::read(fields).map(Arc::new)),
        "ModelRoute" => objects
            .routes
            .extend(model_route::read(fields).map(Arc::new)),
        "ExternalModelProvider" => objects
            .providers
            .extend(external_provider::read(fields).map(Arc::new)),
        "Secret" => objects.secrets.extend(secret::read(fields)),
        // What `kubectl get -o yaml` writes.
        _ => {
            fields.skip(&["metadata"]);
            for item in fields
                .required("items")
                .and_then(|items| items.list(usize::MAX))
                .unwrap_or_default()
            {
                read_object(&item, objects);
            }
            fields.finish();
        }
    }
}

/// Each name once in its kind.
pub(crate) fn check_names(objects: &Objects) -> Vec<Problem> {
    let mut found = Vec::new();
    twice(
        "ModelServer",
        objects.servers.iter().map(|o| &o.meta),
        &mut found,
    );
    twice(
        "ModelRoute",
        objects.routes.iter().map(|o| &o.meta),
        &mut found,
    );
    twice(
        "ExternalModelProvider",
        objects.providers.iter().map(|o| &o.meta),
        &mut found,
    );
    twice(
        "Secret",
        objects.secrets.iter().map(|o| &o.meta),
        &mut found,
    );
    found
}

/// A warning for each target that does not exist. Only of use when every object could be read.
pub(crate) fn check_targets(objects: &Objects) -> Vec<Problem> {
    let mut found = Vec::new();
    for route in &objects.routes {
        route.check_targets(objects, &mut found);
    }
    found
}

fn twice<'a>(kind: &str, metas: impl Iterator<Item = &'a Meta>, found: &mut Vec<Problem>) {
    let mut seen: HashMap<_, &Meta> = HashMap::new();
    for meta in metas {
        if let Some(first) = seen.get(&meta.name) {
            let message = format!("{kind} {} is already defined at {}", meta.name, first.place);
            found.push(
                meta.place
                    .problem(Severity::Error, "metadata.name", message),
            );
        } else {
            seen.insert(&meta.name, meta);
        }
    }
}
