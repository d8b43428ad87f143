//! TLS for listeners, with certificates that change while the router runs.
//!
//! TLS 1.2 and 1.3 by rustls, cryptography by ring; clients are not asked for certificates. HTTP/2 and HTTP/1.1 are chosen
//! by ALPN. A listener without TLS runs none of this.

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longest handshake: two round trips and a signature take far less on any working path.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a certificate cannot be used. Never shows anything of the key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The certificate is not PEM, or there is none in it.
    #[error("not a certificate in PEM: {0}")]
    Certificate(pem::Error),
    /// The key is not PEM, or there is none in it.
    #[error("not a private key in PEM: {0}")]
    Key(pem::Error),
    /// The key is of an unknown kind, or it is not the certificate's.
    #[error("certificate and key cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// The certificate in force; new connections get it. Without one every handshake fails.
#[derive(Default)]
pub struct Certificate(ArcSwapOption<CertifiedKey>);

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate")
            .field(&self.0.load().is_some())
            .finish()
    }
}

impl Certificate {
    /// Puts a certificate chain and its key into force, both in PEM, the server's certificate first.
    ///
    /// # Errors
    /// When the two cannot be used; the certificate before stays in force.
    pub fn set(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(TlsError::Certificate)?;
        if chain.is_empty() {
            return Err(TlsError::Certificate(pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(TlsError::Pair)?;
        self.0.store(Some(Arc::new(pair)));
        Ok(())
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// What the files of a certificate held.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The file of the certificate.
    pub certificate: Vec<u8>,
    /// The file of the key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

/// A certificate and its key in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain in PEM, the server's certificate first.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Whether both are there.
    #[must_use]
    pub fn exist(&self) -> bool {
        self.certificate.exists() && self.key.exists()
    }

    /// The content of both.
    ///
    /// # Errors
    /// When one cannot be read.
    pub async fn read(&self) -> Result<Content, TlsError> {
        let read = async |path: &PathBuf| {
            tokio::fs::read(path)
                .await
                .map_err(|source| TlsError::File {
                    path: path.clone(),
                    source,
                })
        };
        Ok(Content {
            certificate: read(&self.certificate).await?,
            key: read(&self.key).await?,
        })
    }

    /// Puts what the files hold into force.
    ///
    /// # Errors
    /// When they cannot be read or used.
    pub async fn load(&self, into: &Certificate) -> Result<Content, TlsError> {
        let content = self.read().await?;
        into.set(&content.certificate, &content.key)?;
        Ok(content)
    }

    /// Looks at the files every `period` and puts a content other than `seen` into force. Never returns.
    ///
    /// A content that cannot be used is logged once, and the certificate before stays in force: the two files of a
    /// certificate that is being renewed do not change in one step. The files are read, not watched, as mounts of Secrets
    /// swap symbolic links; a content, not a time, tells whether they changed.
    pub async fn follow(self, mut seen: Content, into: Arc<Certificate>, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut complained = None;
        loop {
            ticks.tick().await;
            let failed = match self.read().await {
                Ok(now) if now == seen => None,
                Ok(now) => match into.set(&now.certificate, &now.key) {
                    Ok(()) => {
                        tracing::info!("certificate {} renewed", self.certificate.display());
                        seen = now;
                        None
                    }
                    Err(error) => Some(error),
                },
                Err(error) => Some(error),
            };
            let complaint = failed.map(|error| error.to_string());
            if let Some(error) = &complaint
                && complaint != complained
            {
                tracing::warn!(
                    "certificate {} not renewed, the one before stays in force: {error}",
                    self.certificate.display()
                );
            }
            complained = complaint;
        }
    }
}

/// What turns an accepted connection into a TLS connection.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Answers with the certificate that is in force at each handshake.
    ///
    /// # Errors
    /// When the cryptography has no cipher for the protocol versions, which ring has.
    pub fn new(certificate: Arc<Certificate>) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificate);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// The connection after its handshake; `None` where there was none, which is the client's affair.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        match timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!("no TLS handshake: {error}");
                None
            }
            Err(_) => None,
        }
    }
}
