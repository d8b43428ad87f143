//! `GET /`: the router, live, on one page. It stands alone: no other asset, no other origin, and a policy that holds the
//! browser to that. All it shows comes from the debug pages beside it.

use crate::front::ClientBody;
use bytes::Bytes;
use http::Response;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

macro_rules! style {
    () => {
        include_str!("page/page.css")
    };
}
macro_rules! script {
    () => {
        concat!(
            include_str!("page/dom.js"),
            include_str!("page/history.js"),
            include_str!("page/chart.js"),
            include_str!("page/tiles.js"),
            include_str!("page/pods.js"),
            include_str!("page/decisions.js"),
            include_str!("page/doctor.js"),
            include_str!("page/main.js"),
        )
    };
}

const PAGE: &str = concat!(
    include_str!("page/head.html"),
    "<style>",
    style!(),
    "</style>\n",
    include_str!("page/body.html"),
    "<script>",
    script!(),
    "</script>\n",
    include_str!("page/tail.html"),
);

/// Only this style and this script run, and they talk to where they came from only.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        base64(&Sha256::digest(style!())),
        base64(&Sha256::digest(script!())),
    )
});

pub(super) fn answer() -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(Bytes::from_static(PAGE.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits = (0..3).fold(0, |bits, n| {
            bits << 8 | usize::from(chunk.get(n).copied().unwrap_or(0))
        });
        let letter = |n: usize| match n <= chunk.len() {
            true => char::from(LETTERS[bits >> (18 - 6 * n) & 63]),
            false => '=',
        };
        [letter(0), letter(1), letter(2), letter(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn base64_of_the_standard() {
        for (text, wanted) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
    }

    /// What the router tells is set as text, and styles are set where the policy allows it.
    #[test]
    fn the_script_never_parses_markup() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "setAttribute(\"style\"",
        ] {
            assert!(!PAGE.contains(word), "{word}");
        }
        for word in ["http://", "https://", " style=", " onclick="] {
            let namespaces = PAGE.replace("http://www.w3.org/2000/svg", "");
            assert!(!namespaces.contains(word), "{word}");
        }
    }
}
