//! The validating admission webhook: an HTTPS listener that an API server asks before it stores our kinds.
//!
//! It stands beside the data plane: whatever goes wrong here is logged and tried again, and requests are served on.

mod keeper;
mod server;
#[cfg(test)]
mod tests;

use crate::flags::WebhookFlags;
use control::admission::Store;
use keeper::Keeper;
use proxy::tls::{Certificate, CertificateFiles, Tls};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The object that tells an API server where to ask. The chart creates it.
const CONFIGURATION: &str = "kthena-router-validating-webhook";
/// Pause before a cluster that could not be reached is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Serves for ever. `namespace` is the router's own, if it was told.
pub(crate) async fn run(listener: TcpListener, flags: WebhookFlags, namespace: Option<String>) {
    let store = loop {
        let connected =
            Store::connect(namespace.as_deref(), &flags.cert_secret_name, CONFIGURATION);
        match connected.await {
            Ok(store) => break store,
            Err(error) => tracing::error!("webhook: {error}; trying again in {RETRY:?}"),
        }
        tokio::time::sleep(RETRY).await;
    };
    let files = CertificateFiles {
        certificate: flags.webhook_tls_cert_file,
        key: flags.webhook_tls_private_key_file,
    };
    serve(listener, store, files, &flags.webhook_service_name).await;
}

async fn serve(listener: TcpListener, store: Store, files: CertificateFiles, service: &str) {
    let certificate = Arc::new(Certificate::default());
    let tls = match Tls::new(Arc::clone(&certificate)) {
        Ok(tls) => tls,
        Err(error) => {
            tracing::error!("webhook: no TLS: {error}");
            return;
        }
    };
    let keeper = Keeper::new(store, files, service, certificate);
    let reviews = server::Reviews::default();
    // Ended with this future, not before.
    let mut tasks = JoinSet::new();
    tasks.spawn(keeper.keep());
    tasks.spawn(proxy::front::serve_tls(listener, tls, move |request| {
        reviews.clone().answer(request)
    }));
    tasks.join_next().await;
}
