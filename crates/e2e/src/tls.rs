//! Certificates to serve with, and a client that trusts them.

use crate::within;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The versions of TLS that a server must speak.
pub const TLS_VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// An authority that signs certificates.
#[derive(Debug)]
pub struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

impl Default for CertificateAuthority {
    fn default() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }
}

impl CertificateAuthority {
    /// Certificate and key for a name, in PEM.
    #[must_use]
    pub fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// What serves TLS with a certificate for a name, or an address, of this authority.
    #[must_use]
    pub fn acceptor(&self, name: &str) -> TlsAcceptor {
        let (certificate, key) = self.sign(name);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// Its own certificate, in PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }
}

/// A client that trusts one authority.
#[derive(Clone, Debug)]
pub struct TlsClient {
    roots: RootCertStore,
    versions: Vec<&'static SupportedProtocolVersion>,
    alpn: Vec<Vec<u8>>,
}

impl TlsClient {
    /// Trusts the authority with this certificate, in PEM; speaks HTTP/1.1 only.
    #[must_use]
    pub fn new(authority: &[u8]) -> Self {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(authority).unwrap())
            .unwrap();
        Self {
            roots,
            versions: tokio_rustls::rustls::DEFAULT_VERSIONS.to_vec(),
            alpn: vec![b"http/1.1".to_vec()],
        }
    }

    /// Offers HTTP/2 first, HTTP/1.1 second.
    #[must_use]
    pub fn offering_h2(mut self) -> Self {
        self.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        self
    }

    /// Speaks this version of TLS only.
    #[must_use]
    pub fn only(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    /// Connects to a port of loopback that should be `name`.
    ///
    /// # Errors
    /// When there is no handshake.
    pub async fn connect(&self, port: u16, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols.clone_from(&self.alpn);
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        within("a handshake", connector.connect(name, stream)).await
    }

    /// Sends a request on a connection of its own, by the protocol that ALPN chose. Its URI is a path.
    ///
    /// # Errors
    /// When there is no handshake.
    pub async fn send(
        &self,
        port: u16,
        name: &str,
        request: Request<String>,
    ) -> std::io::Result<Response<Bytes>> {
        let stream = self.connect(port, name).await?;
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let (mut head, body) = request.into_parts();
        let body = Full::new(Bytes::from(body));
        let response = if h2 {
            head.uri = format!("https://{name}{}", head.uri).parse().unwrap();
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            within(
                "a response",
                sender.send_request(Request::from_parts(head, body)),
            )
            .await
        } else {
            head.headers.insert("host", name.parse().unwrap());
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            within(
                "a response",
                sender.send_request(Request::from_parts(head, body)),
            )
            .await
        };
        let (head, body) = response.unwrap().into_parts();
        let body = within("the body", body.collect()).await.unwrap().to_bytes();
        Ok(Response::from_parts(head, body))
    }
}
