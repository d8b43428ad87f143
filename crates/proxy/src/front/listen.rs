//! Listeners and their connections. HTTP/1.1 and HTTP/2 (prior knowledge, or ALPN with TLS) share one port.

use super::ClientBody;
use super::client_stream::ClientStream;
use crate::app::App;
use crate::lifecycle::Phase;
use crate::tls::Tls;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::Receiver;

/// Longest wait for a client's first bytes, for a request head, and for the next request of a connection. Longer than the idle time-out of usual load
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

/// Serves clients, in plain text unless `tls` is given; `answer` is called for each request. A drain waits for these
/// connections, and ends the listener after some seconds.
pub async fn serve_clients<A, F>(app: Arc<App>, listener: TcpListener, tls: Option<Tls>, answer: A)
where
    A: Fn(Arc<App>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<ClientBody>, Infallible>> + Send + 'static,
{
    let builder = Arc::new(builder());
    let mut phase = app.lifecycle.subscribe();
    let serving = accept(listener, |stream| {
        let (builder, own, answer) = (Arc::clone(&builder), Arc::clone(&app), answer.clone());
        // Two kinds of tasks, so that a connection in plain text carries nothing of a handshake.
        match tls.clone() {
            None => app
                .lifecycle
                .spawn(connection(builder, own, stream, answer)),
            Some(tls) => app.lifecycle.spawn(async move {
                if let Some(stream) = tls.accept(stream).await {
                    connection(builder, own, stream, answer).await;
                }
            }),
        }
    });
    tokio::select! {
        () = serving => {}
        _ = phase.wait_for(|phase| *phase >= Phase::Closing) => {}
    }
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
            let stream = TokioIo::new(ClientStream::new(stream, HEAD_TIMEOUT));
            let _ = builder.serve_connection(stream, service).await;
        });
    })
    .await;
}

/// Serves requests over TLS for ever, until the process ends; for what is no part of the data plane.
pub async fn serve_tls<A, F, B>(listener: TcpListener, tls: Tls, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let builder = Arc::new(builder());
    accept(listener, |stream| {
        let (builder, tls, answer) = (Arc::clone(&builder), tls.clone(), answer.clone());
        tokio::spawn(async move {
            if let Some(stream) = tls.accept(stream).await {
                let stream = TokioIo::new(ClientStream::new(stream, HEAD_TIMEOUT));
                let _ = builder.serve_connection(stream, service_fn(answer)).await;
            }
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

async fn connection<A, F, S>(
    builder: Arc<Builder<TokioExecutor>>,
    app: Arc<App>,
    stream: S,
    answer: A,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Arc<App>, Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<ClientBody>, Infallible>> + Send + 'static,
{
    // Before the first request, which may be answered at once: a drain that begins meanwhile must not be taken for one
    // that was there before.
    let mut phase = app.lifecycle.subscribe();
    let came_late = *phase.borrow_and_update() >= Phase::Draining;
    let service_app = Arc::clone(&app);
    let service = service_fn(move |request| answer(Arc::clone(&service_app), request));
    let stream = TokioIo::new(ClientStream::new(stream, HEAD_TIMEOUT));
    let mut serving = pin!(builder.serve_connection(stream, service));
    tokio::select! {
        biased;
        ended = serving.as_mut() => return refused_head(&app, ended),
        () = draining(phase, came_late) => {}
    }
    serving.as_mut().graceful_shutdown();
    refused_head(&app, serving.await);
}

/// Notes a head that the server refused to read. Of all else that ends a connection a client that broke off is its own
/// business, and what matters was recorded with the request.
fn refused_head(app: &App, ended: Result<(), Box<dyn Error + Send + Sync>>) {
    if let Err(error) = ended
        && let Some(error) = error.downcast_ref::<hyper::Error>()
        && error.is_parse()
    {
        app.metrics.malformed.inc();
        tracing::info!("request refused, its head cannot be read: {error}");
    }
}

/// Waits for the drain to begin. A connection that comes after that is served until no more are taken.
async fn draining(mut phase: Receiver<Phase>, came_late: bool) {
    let end = if came_late {
        Phase::Closing
    } else {
        Phase::Draining
    };
    if phase.wait_for(|phase| *phase >= end).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Settings;
    use crate::metrics::Metrics;
    use routing::schedule::{Scheduler, SchedulerConfig};
    use tokio::io::AsyncWriteExt;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_no_request_arrives_ends() {
        for sent in ["", "PRI * HTTP", "P", "POST /v1/x HTTP/1.1\r\nHost:"] {
            let scheduler = Scheduler::new(&SchedulerConfig::default());
            let app = Arc::new(App::new(
                Settings::default(),
                scheduler,
                Metrics::new(),
                None,
            ));
            let (mut client, server) = tokio::io::duplex(1024);
            client.write_all(sent.as_bytes()).await.unwrap();
            let begun = Instant::now();
            let served = connection(Arc::new(builder()), app, server, crate::front::serve);
            let ended = tokio::time::timeout(HEAD_TIMEOUT * 2, served).await;
            assert!(ended.is_ok(), "{sent:?} keeps the connection for ever");
            assert_eq!(
                begun.elapsed().as_secs(),
                HEAD_TIMEOUT.as_secs(),
                "{sent:?}"
            );
        }
    }
}
