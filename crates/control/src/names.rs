//! The syntax of names, labels and hosts, as Kubernetes and the DNS define it.

use std::net::IpAddr;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character";

fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The name of an object: RFC 1123 subdomain, at most 253 characters.
pub(crate) fn check_object_name(text: &str) -> Result<(), String> {
    let parts = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= 253 && text.split('.').all(parts) {
        Ok(())
    } else {
        Err(invalid(text, SUBDOMAIN))
    }
}

/// The name of a namespace: RFC 1123 label.
pub(crate) fn check_namespace(text: &str) -> Result<(), String> {
    if is_dns_label(text) {
        Ok(())
    } else {
        Err(invalid(text, LABEL))
    }
}

/// How a syntax is checked: the error is a whole message.
pub(crate) type Check = fn(&str) -> Result<(), String>;

/// An API group: empty for the core group, otherwise a subdomain.
pub(crate) fn check_group(text: &str) -> Result<(), String> {
    if text.is_empty() {
        Ok(())
    } else {
        check_object_name(text)
    }
}

/// A kind: letters, digits and inner dashes, a letter first, at most 63 characters.
pub(crate) fn check_kind(text: &str) -> Result<(), String> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if text.len() <= 63 && starts && text.bytes().all(inner) && !text.ends_with('-') {
        Ok(())
    } else {
        Err(invalid(
            text,
            "must consist of alphanumeric characters or '-', start with a letter and end with an alphanumeric character",
        ))
    }
}

/// The name of an endpoint: it becomes a part of the pod's name, so the separators `/` and `:` are out.
pub(crate) fn check_endpoint_name(text: &str) -> Result<(), String> {
    if text.len() <= 253 && is_qualified(text) {
        Ok(())
    } else {
        Err(invalid(
            text,
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
            alphanumeric character",
        ))
    }
}

fn invalid(text: &str, why: &str) -> String {
    format!("Invalid value: {text:?}: {why}")
}

fn is_qualified(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().all(|&b| inner(b)) && edge(bytes.first()) && edge(bytes.last())
}

/// The key of a label: an optional DNS prefix and a name of at most 63 characters.
pub(crate) fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(p, n)| (Some(p), n));
    name.len() <= 63 && is_qualified(name) && prefix.is_none_or(|p| check_object_name(p).is_ok())
}

/// The value of a label: empty, or at most 63 characters.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && is_qualified(text))
}

/// Where a pod listens: an IP address without brackets or a host name, in both cases without a port.
///
/// Underscores are allowed in host names, as container engines use them.
pub(crate) fn check_address(text: &str) -> Result<(), String> {
    if text.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        (1..=63).contains(&label.len())
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let host = text.strip_suffix('.').unwrap_or(text);
    // A name whose last label is a number would be read as a broken IPv4 address by every resolver.
    let number = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if host.len() <= 253 && host.split('.').all(label) && !number {
        return Ok(());
    }
    let hint = if text.contains("://") {
        "; leave the scheme out"
    } else if text.starts_with('[') {
        "; an IPv6 address is written without brackets and the port in the field port"
    } else if text.matches(':').count() == 1 {
        "; the port belongs in the field port"
    } else {
        ""
    };
    Err(invalid(
        text,
        &format!("must be an IP address or a host name{hint}"),
    ))
}
