//! The debug listener of the demo: one address from start to end, whichever router runs behind it.

use anyhow::Context;
use proxy::{App, debug, front};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The listener. Dropping it ends its accepting.
pub(super) struct Page {
    address: SocketAddr,
    listener: Option<TcpListener>,
    shown: Option<watch::Sender<Arc<App>>>,
    tasks: JoinSet<()>,
}

impl Page {
    /// Takes a free port. Who connects before the first router runs has to wait for it.
    pub(super) async fn bind() -> anyhow::Result<Self> {
        let listener = front::listen(0, true)
            .await
            .context("cannot listen on loopback")?;
        Ok(Self {
            address: listener.local_addr()?,
            listener: Some(listener),
            shown: None,
            tasks: JoinSet::new(),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Shows this router from now on, on connections that are open too.
    pub(super) fn show(&mut self, app: &Arc<App>) {
        if let Some(shown) = &self.shown {
            shown.send_replace(Arc::clone(app));
        }
        let Some(listener) = self.listener.take() else {
            return;
        };
        let (sender, shown) = watch::channel(Arc::clone(app));
        self.shown = Some(sender);
        self.tasks.spawn(front::serve_operators(
            Arc::clone(app),
            listener,
            move |_, request| debug::serve(Arc::clone(&shown.borrow()), request),
        ));
    }
}
