//! One HTTP request, for the commands that talk to a router.

use anyhow::{Context, bail};
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends a request and reads the whole answer.
pub(crate) async fn request(
    method: Method,
    url: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let uri: Uri = url
        .parse()
        .with_context(|| format!("{url:?} is not a URL"))?;
    let Some(authority) = uri.authority().filter(|_| uri.scheme_str() == Some("http")) else {
        bail!("{url:?} is not an http:// URL");
    };
    let stream = TcpStream::connect((
        authority.host().trim_matches(['[', ']']),
        uri.port_u16().unwrap_or(80),
    ))
    .await
    .with_context(|| format!("cannot connect to {authority}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |pq| pq.as_str());
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority.as_str());
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = sender
        .send_request(request.body(Full::new(Bytes::from(body)))?)
        .await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
