//! Keeps a certificate in force, and the API server's trust in it.

use anyhow::Context;
use control::admission::{Pem, Store, generate};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proxy::tls::{Certificate, CertificateFiles};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often the Secret, the files and the API server's trust are looked at again: a renewed certificate is served within
/// a minute, which is soon for one that is renewed days before it ends.
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// Longest time of one look.
const LIMIT: Duration = Duration::from_secs(30);

/// Finds the certificate: in the Secret, else in the files, else it makes one and stores it in the Secret.
#[derive(Debug)]
pub(super) struct Keeper {
    store: Store,
    files: CertificateFiles,
    names: Vec<String>,
    served: Arc<Certificate>,
    current: Option<Pem>,
}

impl Keeper {
    pub(super) fn new(
        store: Store,
        files: CertificateFiles,
        service: &str,
        served: Arc<Certificate>,
    ) -> Self {
        let host = format!("{service}.{}.svc", store.namespace());
        let names = vec![format!("{host}.cluster.local"), host];
        Self {
            store,
            files,
            names,
            served,
            current: None,
        }
    }

    /// Never returns. Each failure is logged once.
    pub(super) async fn keep(mut self) {
        let mut complained = None;
        loop {
            let looked = timeout(LIMIT, self.look()).await;
            let failed = match looked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some(format!("the API server did not answer within {LIMIT:?}")),
            };
            if let Some(error) = &failed
                && failed != complained
            {
                let state = match self.current {
                    Some(_) => "",
                    None => "objects cannot be validated; ",
                };
                tracing::error!("webhook: {error}; {state}trying again every {RETRY:?}");
            }
            sleep(if failed.is_none() { PERIOD } else { RETRY }).await;
            complained = failed;
        }
    }

    pub(super) async fn look(&mut self) -> anyhow::Result<()> {
        let unusable = match self.store.read().await {
            Ok(Some(pem)) => match self.put(pem, "the Secret") {
                Ok(()) => return self.trust().await,
                Err(error) => Some(error),
            },
            Ok(None) => None,
            Err(error) => Some(error.into()),
        };
        if self.files.exist() {
            let content = self.files.read().await?;
            let pem = Pem {
                certificate: content.certificate,
                key: content.key,
                // Whoever wrote the files sees to it that the API server trusts them.
                authority: None,
            };
            let place = self.files.certificate.display().to_string();
            return self.put(pem, &place);
        }
        if let Some(error) = unusable {
            return Err(error);
        }
        let year = Timestamp::now().to_zoned(TimeZone::UTC).year();
        let made = generate(&self.names, year.into())?;
        let stored = self.store.create(made).await?;
        self.put(stored, "a new Secret")?;
        self.trust().await
    }

    async fn trust(&self) -> anyhow::Result<()> {
        if let Some(authority) = self.current.as_ref().and_then(|pem| pem.authority.as_ref())
            && self.store.trust(authority).await?
        {
            tracing::info!("webhook: the API server was told to trust its certificate");
        }
        Ok(())
    }

    fn put(&mut self, pem: Pem, place: &str) -> anyhow::Result<()> {
        if self.current.as_ref() != Some(&pem) {
            self.served
                .set(&pem.certificate, &pem.key)
                .with_context(|| format!("the certificate of {place}"))?;
            tracing::info!("webhook: serving with the certificate of {place}");
            self.current = Some(pem);
        }
        Ok(())
    }
}
