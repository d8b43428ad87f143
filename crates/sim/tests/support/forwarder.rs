//! The smallest router there is, to compare two policies without the real one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test helper fails by panicking"
)]

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming, client::conn::http1 as client, server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use sim::rng::Rng;
use tokio::net::{TcpListener, TcpStream};
use xxhash_rust::xxh3::xxh3_64;

/// How an engine is chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Policy {
    /// By chance.
    Random(u64),
    /// By the first kilobyte of the body: a group stays together.
    ByPrefix,
}

/// Starts forwarding on a free port.
pub(crate) async fn start(engines: Vec<SocketAddr>, policy: Policy) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let seed = if let Policy::Random(seed) = policy {
        seed
    } else {
        0
    };
    let shared = Arc::new((engines, policy, Mutex::new(Rng::new(seed))));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let shared = Arc::clone(&shared);
            let service = service_fn(move |request: Request<Incoming>| {
                let shared = Arc::clone(&shared);
                async move {
                    Ok::<_, Infallible>(forward(&shared.0, shared.1, &shared.2, request).await)
                }
            });
            tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

async fn forward(
    engines: &[SocketAddr],
    policy: Policy,
    rng: &Mutex<Rng>,
    request: Request<Incoming>,
) -> Response<Incoming> {
    let (parts, body) = request.into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let index = match policy {
        Policy::Random(_) => rng.lock().below(engines.len()),
        Policy::ByPrefix => {
            (xxh3_64(&body[..body.len().min(1_024)]) % engines.len() as u64) as usize
        }
    };
    let stream = TcpStream::connect(engines[index]).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
        .send_request(Request::from_parts(parts, Full::new(body)))
        .await
        .unwrap()
}
