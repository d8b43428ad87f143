//! One GET of the key set: bounded in time and in size, over TLS or not.

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Longest fetch, from the name's look-up to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest key set, in bytes; a real one has a few KiB.
const MAX_SET: usize = 1 << 20;

/// Where a key set is.
pub(super) struct Place {
    host: String,
    port: u16,
    authority: String,
    path: String,
    /// With TLS: how, and the name that the server must prove.
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Place {
    /// Reads a URL. The certificates of the system are trusted, or those of the file that `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// When it is no URL of `http` or `https`, or there are no certificates to trust.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        Self::trusting(url, || {
            let mut roots = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            match roots.is_empty() {
                true => Err("no trusted certificates were found on this system".into()),
                false => Ok(roots),
            }
        })
    }

    pub(super) fn trusting(
        url: &str,
        roots: impl FnOnce() -> Result<RootCertStore, String>,
    ) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|e| format!("it is no URL: {e}"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("it is no URL with a scheme and a host".into());
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let (tls, usual) = match scheme {
            "http" => (None, 80),
            "https" => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| format!("{host:?} is no name that a server can prove"))?;
                (Some((connector(roots()?)?, name)), 443)
            }
            other => return Err(format!("the scheme {other} is not supported")),
        };
        Ok(Self {
            port: authority.port_u16().unwrap_or(usual),
            // Without a user's name that may stand before the host.
            authority: authority
                .as_str()
                .rsplit('@')
                .next()
                .unwrap_or_default()
                .to_owned(),
            path: uri
                .path_and_query()
                .map_or("/", |pq| pq.as_str())
                .to_owned(),
            host,
            tls,
        })
    }

    /// Whether somebody on the way could replace what is fetched.
    pub(super) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Fetches the set.
    ///
    /// # Errors
    /// When it does not come whole in five seconds, is longer than 1 MiB, or comes with another status than 200.
    /// Redirects are not followed.
    pub(super) async fn fetch(&self) -> Result<Bytes, String> {
        tokio::time::timeout(TIMEOUT, self.connected())
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", TIMEOUT.as_secs())))
    }

    async fn connected(&self) -> Result<Bytes, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|e| format!("cannot connect to {}: {e}", self.authority))?;
        match &self.tls {
            None => self.get(stream).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await;
                self.get(stream.map_err(|e| format!("TLS: {e}"))?).await
            }
        }
    }

    async fn get<S>(&self, stream: S) -> Result<Bytes, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let broken = |e: hyper::Error| e.to_string();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        let request = Request::get(&self.path)
            .header(HOST, &self.authority)
            .header(ACCEPT, "application/json")
            .header(
                USER_AGENT,
                concat!("kthena-router/", env!("CARGO_PKG_VERSION")),
            )
            .body(Empty::<Bytes>::new())
            .map_err(|e| e.to_string())?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            if response.status() != StatusCode::OK {
                return Err(format!("{} answered {}", self.authority, response.status()));
            }
            let body = Limited::new(response.into_body(), MAX_SET).collect().await;
            body.map(http_body_util::Collected::to_bytes)
                .map_err(|e| e.to_string())
        };
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // The connection may end with the last byte of the answer, which is then still to be read.
            end = &mut connection => {
                end.map_err(broken)?;
                answer.await
            }
        }
    }
}

/// TLS 1.2 and 1.3 by ring.
fn connector(roots: RootCertStore) -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
