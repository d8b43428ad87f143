//! Connections: accept, serve, close when idle or at the end.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{core::Core, idle::Idle, service};

/// How long an accept loop waits after an error such as "too many open files".
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until `stop` turns true, then waits for those that are open.
pub(super) async fn serve(core: Arc<Core>, listener: TcpListener, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|&stop| stop) => break,
        };
        match accepted {
            Ok((stream, _peer)) => {
                connections.spawn(connection(Arc::clone(&core), stream, stop.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection(core: Arc<Core>, stream: TcpStream, mut stop: watch::Receiver<bool>) {
    // Each token is one small write; waiting for an acknowledgement would add up.
    let _ = stream.set_nodelay(true);
    let keep_alive = core.options.keep_alive;
    let (idle, mut idle_since) = Idle::new();
    let service = service_fn(move |request: Request<Incoming>| {
        let (core, busy) = (Arc::clone(&core), idle.busy());
        async move {
            let mut response = service::answer(&core, request).await;
            response.body_mut().busy = Some(busy);
            Ok::<_, Infallible>(response)
        }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let mut closing = *stop.borrow_and_update();
    if closing {
        serving.as_mut().graceful_shutdown();
    }
    loop {
        let deadline = idle_since
            .borrow_and_update()
            .map(|since| since + keep_alive);
        tokio::select! {
            _ = serving.as_mut() => return,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && !closing => {
                closing = true;
                serving.as_mut().graceful_shutdown();
            }
            Ok(()) = idle_since.changed() => {}
            Ok(()) = stop.changed(), if !closing => {
                closing = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
