//! Where the webhook's certificate is kept in a cluster, and how its API server comes to trust it.

use super::certificate::Pem;
use crate::cluster::{ClusterOptions, ConnectError};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;
use std::collections::BTreeMap;

/// Keys of a Secret of type `kubernetes.io/tls`, and the one that cert-manager adds.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";
/// Annotations with this prefix tell cert-manager to write the caBundle.
const INJECTED: &str = "cert-manager.io/inject-ca-from";
/// Who the changes are by.
const FIELD_MANAGER: &str = "kthena-router";

/// The Secret of the certificate and the webhook's configuration.
#[derive(Clone, Debug)]
pub struct Store {
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    namespace: String,
    secret: String,
    configuration: String,
}

/// What could not be done in the cluster.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no way to an API server.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The API server refused or did not answer.
    #[error("cannot {action}: {source}")]
    Api {
        /// What was tried.
        action: String,
        /// Why not.
        source: Box<Error>,
    },
    /// The Secret exists without a certificate.
    #[error("the Secret {secret} has no {key}")]
    Incomplete {
        /// `namespace/name`.
        secret: String,
        /// The key that is missing or empty.
        key: &'static str,
    },
}

impl Store {
    /// The same as [`Self::new`] with the cluster that the cluster source finds. Without a `namespace` it is that of the
    /// credentials: the pod's own.
    ///
    /// # Errors
    /// When there is no cluster.
    pub async fn connect(
        namespace: Option<&str>,
        secret: &str,
        configuration: &str,
    ) -> Result<Self, StoreError> {
        let (client, _) = ClusterOptions::default().connect().await?;
        let own = client.default_namespace().to_owned();
        let namespace = namespace.unwrap_or(&own);
        Ok(Self::new(client, namespace, secret, configuration))
    }

    /// The namespace of the Secret.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Secret `namespace/secret` and the ValidatingWebhookConfiguration `configuration`.
    #[must_use]
    pub fn new(client: Client, namespace: &str, secret: &str, configuration: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            configurations: Api::all(client),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            configuration: configuration.to_owned(),
        }
    }

    /// What the Secret holds; `None` if there is no Secret.
    ///
    /// # Errors
    /// When the Secret cannot be read or is not complete.
    pub async fn read(&self) -> Result<Option<Pem>, StoreError> {
        let secret = self
            .secrets
            .get_opt(&self.secret)
            .await
            .map_err(|e| self.failed("read", e))?;
        secret.map(|secret| self.unpack(secret)).transpose()
    }

    /// Creates the Secret. If another router was first, its certificate is the one to use and is returned.
    ///
    /// # Errors
    /// When the Secret can neither be created nor read.
    pub async fn create(&self, pem: Pem) -> Result<Pem, StoreError> {
        let bytes = |content: &[u8]| ByteString(content.to_vec());
        let mut data = BTreeMap::from([
            (CERTIFICATE.to_owned(), bytes(&pem.certificate)),
            (KEY.to_owned(), bytes(&pem.key)),
        ]);
        if let Some(authority) = &pem.authority {
            data.insert(AUTHORITY.to_owned(), bytes(authority));
        }
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.secret.clone()),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            data: Some(data),
            ..Secret::default()
        };
        let by = PostParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        match self.secrets.create(&by, &secret).await {
            Ok(_) => Ok(pem),
            Err(Error::Api(status)) if status.code == 409 => {
                let first = self.secrets.get(&self.secret).await;
                self.unpack(first.map_err(|e| self.failed("read", e))?)
            }
            Err(error) => Err(self.failed("create", error)),
        }
    }

    /// Makes the API server trust `authority` for each webhook of the configuration. Returns whether it had to be told.
    ///
    /// Nothing is done where there is no configuration, where cert-manager writes it, and where the authority is one of
    /// several that are trusted.
    ///
    /// # Errors
    /// When the configuration cannot be read or changed.
    pub async fn trust(&self, authority: &[u8]) -> Result<bool, StoreError> {
        let failed = |verb: &str, source| StoreError::Api {
            action: format!(
                "{verb} the ValidatingWebhookConfiguration {}",
                self.configuration
            ),
            source: Box::new(source),
        };
        let found = self
            .configurations
            .get_opt(&self.configuration)
            .await
            .map_err(|e| failed("read", e))?;
        let Some(found) = found else { return Ok(false) };
        let annotations = found.metadata.annotations.unwrap_or_default();
        if annotations.keys().any(|key| key.starts_with(INJECTED)) {
            return Ok(false);
        }
        let bundle = ByteString(authority.to_vec());
        let stale: Vec<_> = found
            .webhooks
            .unwrap_or_default()
            .into_iter()
            .filter(|webhook| {
                let trusted = webhook.client_config.ca_bundle.as_ref();
                !trusted.is_some_and(|trusted| holds(&trusted.0, authority))
            })
            // Merged by name, so that what others change at the same time stays.
            .map(|webhook| json!({"name": webhook.name, "clientConfig": {"caBundle": bundle}}))
            .collect();
        if stale.is_empty() {
            return Ok(false);
        }
        let by = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        self.configurations
            .patch(
                &self.configuration,
                &by,
                &Patch::Strategic(json!({"webhooks": stale})),
            )
            .await
            .map_err(|e| failed("change", e))?;
        Ok(true)
    }

    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.secret)
    }

    fn unpack(&self, secret: Secret) -> Result<Pem, StoreError> {
        let mut data = secret.data.unwrap_or_default();
        let mut take = |key| data.remove(key).map(|b| b.0).filter(|b| !b.is_empty());
        let needed = |content: Option<Vec<u8>>, key| {
            content.ok_or_else(|| StoreError::Incomplete {
                secret: self.place(),
                key,
            })
        };
        Ok(Pem {
            certificate: needed(take(CERTIFICATE), CERTIFICATE)?,
            key: needed(take(KEY), KEY)?,
            authority: take(AUTHORITY),
        })
    }

    fn failed(&self, verb: &str, source: Error) -> StoreError {
        StoreError::Api {
            action: format!("{verb} the Secret {}", self.place()),
            source: Box::new(source),
        }
    }
}

/// Whether a bundle of certificates in PEM has this one.
fn holds(bundle: &[u8], authority: &[u8]) -> bool {
    let wanted = authority.trim_ascii();
    !wanted.is_empty() && bundle.windows(wanted.len()).any(|part| part == wanted)
}
