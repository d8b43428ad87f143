//! The token of a request (RFC 6750, section 2.1): the `Authorization` header, and no other place.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The token: two words, the first of which is `Bearer` in any case. A request with several such headers has none.
pub(super) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let mut words = value.to_str().ok()?.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some(scheme), Some(token), None) if scheme.eq_ignore_ascii_case("bearer") => Some(token),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_of_which_the_first_is_bearer() {
        let token = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            token(&headers).map(str::to_owned)
        };
        for good in [
            "Bearer a.b.c",
            "bearer a.b.c",
            "BEARER \t a.b.c ",
            " Bearer a.b.c",
        ] {
            assert_eq!(token(&[good]).as_deref(), Some("a.b.c"), "{good:?}");
        }
        for bad in [
            "",
            "Bearer",
            "a.b.c",
            "Basic a.b.c",
            "Bearer a b",
            "Bearera.b.c",
        ] {
            assert_eq!(token(&[bad]), None, "{bad:?}");
        }
        assert_eq!(token(&[]), None);
        assert_eq!(token(&["Bearer a", "Bearer a"]), None, "which of them?");
    }
}
