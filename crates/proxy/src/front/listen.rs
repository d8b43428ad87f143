//! Listeners and their connections. HTTP/1.1 and HTTP/2 (prior knowledge) share one port.

use super::ClientBody;
use crate::app::App;
use crate::lifecycle::{Lifecycle, Phase};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Longest wait for a request head, idle time between requests included. Longer than the idle time-out of usual load
/// balancers (60 s), so that they close first and no request meets a connection that is just being closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause after a failed accept, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// HTTP/2 flow-control windows, in bytes: a prompt of usual length arrives without waiting for a window update.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Binds a port on all addresses (IPv6 with IPv4, or IPv4 alone where there is no IPv6), or on loopback.
///
/// # Errors
/// When the port is taken or may not be bound.
pub async fn listen(port: u16, loopback: bool) -> io::Result<TcpListener> {
    if loopback {
        return TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    }
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        other => other,
    }
}

/// Serves clients for ever; `answer` is called for each request. A drain waits for these connections.
pub async fn serve_clients<A, F>(app: Arc<App>, listener: TcpListener, answer: A)
where
    A: Fn(Arc<App>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<ClientBody>, Infallible>> + Send + 'static,
{
    let builder = Arc::new(builder());
    accept(listener, |stream| {
        app.lifecycle.spawn(connection(
            Arc::clone(&builder),
            Arc::clone(&app),
            stream,
            answer.clone(),
        ));
    })
    .await;
}

/// Serves operators for ever: metrics and debug pages, until the process ends.
pub async fn serve_operators<A, F>(app: Arc<App>, listener: TcpListener, answer: A)
where
    A: Fn(Arc<App>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<ClientBody>, Infallible>> + Send + 'static,
{
    let builder = Arc::new(builder());
    accept(listener, |stream| {
        let (builder, app, answer) = (Arc::clone(&builder), Arc::clone(&app), answer.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&app), request));
            let _ = builder
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    })
    .await;
}

async fn accept(listener: TcpListener, mut spawn: impl FnMut(TcpStream)) {
    loop {
        match listener.accept().await {
            // Each event of a stream is one small write; it must leave at once.
            Ok((stream, _)) if stream.set_nodelay(true).is_ok() => spawn(stream),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(Some(HEAD_TIMEOUT));
    builder
}

async fn connection<A, F>(
    builder: Arc<Builder<TokioExecutor>>,
    app: Arc<App>,
    stream: TcpStream,
    answer: A,
) where
    A: Fn(Arc<App>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<ClientBody>, Infallible>> + Send + 'static,
{
    let service_app = Arc::clone(&app);
    let service = service_fn(move |request| answer(Arc::clone(&service_app), request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        // A client that broke off is its own business; what matters was recorded with the request.
        _ = serving.as_mut() => return,
        () = draining(&app.lifecycle) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}

/// Waits for the drain to begin. A connection that comes after that is served until it has been idle.
async fn draining(lifecycle: &Lifecycle) {
    let mut phase = lifecycle.subscribe();
    if *phase.borrow_and_update() == Phase::Draining
        || phase.wait_for(|p| *p == Phase::Draining).await.is_err()
    {
        std::future::pending::<()>().await;
    }
}
