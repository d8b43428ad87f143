//! Which headers end here and which go on (RFC 9110, section 7.6.1).

use crate::error::Refusal;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Uri};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Headers about one connection only.
const HOP_BY_HOP: [HeaderName; 9] = [
    KEEP_ALIVE,
    PROXY_CONNECTION,
    HTTP2_SETTINGS,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes out the headers that are about one connection, and those that `Connection` names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // A client must not be able to take these away from its own request.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect();
    headers.remove(CONNECTION);
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// One request, one host (RFC 9112, section 3.2): which of several counts is a matter of taste, and tastes differ.
pub(super) fn one_host(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get_all(HOST).iter().nth(1) {
        None => Ok(()),
        Some(_) => Err(Refusal::SeveralHosts),
    }
}

/// A client's headers as a pod gets them. The body is at hand, so its framing is set anew when it is sent.
pub(super) fn for_pod(mut headers: HeaderMap, uri: &Uri) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    headers.remove(EXPECT);
    headers.remove(CONTENT_LENGTH);
    // HTTP/2 and the absolute form carry the host in the URI, which counts more than the header (RFC 9112, section 3.2.2; RFC
    // 9113, section 8.3.1). Who sends none (HTTP/1.0) gets the pod's own when it is asked.
    if let Some(host) = uri
        .authority()
        .map(|a| {
            a.as_str()
                .rsplit_once('@')
                .map_or(a.as_str(), |(_, host)| host)
        })
        .and_then(|host| HeaderValue::from_str(host).ok())
    {
        headers.insert(HOST, host);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_the_target_counts_more_than_the_header() {
        for (target, header, wanted) in [
            ("http://user@other:1/v1/x", Some("x"), Some("other:1")),
            ("http://other/v1/x", None, Some("other")),
            ("/v1/x", Some("x"), Some("x")),
            ("/v1/x", None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(HOST, HeaderValue::from_static(header));
            }
            let headers = for_pod(headers, &target.parse().unwrap());
            let host = headers.get(HOST).map(|h| h.to_str().unwrap());
            assert_eq!(host, wanted, "{target}");
        }
    }

    #[test]
    fn what_connection_names_ends_here_but_not_host_and_length() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "x-a, Host"),
            ("connection", "X-B,content-length"),
            ("x-a", "1"),
            ("x-b", "1"),
            ("x-c", "1"),
            ("host", "h"),
            ("content-length", "3"),
            ("te", "trailers"),
        ] {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        strip_hop_by_hop(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "x-c"]);
    }
}
