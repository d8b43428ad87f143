//! ExternalModelProvider: a hosted model outside. Checked here; serving it is not part of this version.

use super::meta::{self, Meta};
use crate::fields::{Fields, Reader};
use http::{HeaderName, Uri};
use std::collections::BTreeMap;

/// A checked ExternalModelProvider.
#[derive(Clone, Debug)]
pub struct ExternalModelProvider {
    /// Who it is.
    pub meta: Meta,
    /// `spec.providerType`.
    pub provider_type: ProviderType,
    /// `spec.model`: replaces the request's model. At most 256 characters.
    pub model: Option<String>,
    /// `spec.baseURL`: https, without user, query and fragment.
    pub base_url: Uri,
    /// `spec.insecureSkipVerify`.
    pub insecure_skip_verify: bool,
    /// `spec.auth`.
    pub auth: Option<ProviderAuth>,
    /// `spec.headers`: sent with every request.
    pub headers: BTreeMap<String, String>,
}

/// Whose API a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderType {
    /// `OpenAI`, the default.
    OpenAi,
    /// `Anthropic`.
    Anthropic,
}

/// How the router proves itself to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAuth {
    /// How the credential is sent; the way that is usual with the provider's type if not set.
    pub scheme: Option<AuthScheme>,
    /// Name of the Secret, in the provider's namespace.
    pub secret: String,
    /// The key in it.
    pub key: String,
}

/// Ways to send a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// `Authorization: Bearer …`.
    Bearer,
    /// The provider's own header for API keys.
    ApiKey,
}

const TYPES: &[(&str, ProviderType)] = &[
    ("OpenAI", ProviderType::OpenAi),
    ("Anthropic", ProviderType::Anthropic),
];
const SCHEMES: &[(&str, AuthScheme)] = &[
    ("Bearer", AuthScheme::Bearer),
    ("APIKey", AuthScheme::ApiKey),
];

/// Headers that the router sets itself: credentials, and what frames a message on the wire.
const RESERVED_HEADERS: &[&str] = &[
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];

pub(super) fn read(mut fields: Fields<'_>) -> Option<ExternalModelProvider> {
    let meta = meta::read(&mut fields);
    let at = fields.required("spec");
    fields.skip(&["status"]);
    fields.finish();

    let at = at?;
    at.without_effect();
    let mut spec = at.object()?;
    let provider_type = spec
        .optional("providerType")
        .map_or(Some(ProviderType::OpenAi), |t| t.one_of(TYPES));
    let model = spec
        .optional("model")
        .and_then(|m| m.string_up_to(256))
        .map(str::to_owned);
    let base_url = spec.required("baseURL").and_then(|url| read_url(&url));
    let insecure = spec
        .optional("insecureSkipVerify")
        .map_or(Some(false), |skip| skip.boolean());
    let auth = spec.optional("auth").map(|auth| read_auth(&auth));
    let headers = spec
        .optional("headers")
        .map(|headers| read_headers(&headers))
        .unwrap_or_default();
    spec.finish();
    Some(ExternalModelProvider {
        meta: meta?,
        provider_type: provider_type?,
        model: model.filter(|m| !m.is_empty()),
        base_url: base_url?,
        insecure_skip_verify: insecure?,
        auth: auth.flatten(),
        headers,
    })
}

fn read_url(at: &Reader<'_>) -> Option<Uri> {
    let text = at.string()?;
    // The URL stays out of the messages, as it may hold a password.
    let Some(rest) = text
        .strip_prefix("https://")
        .filter(|rest| !rest.is_empty())
    else {
        at.error("Invalid value: baseURL must use https");
        return None;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if text.contains(['?', '#']) || authority.contains('@') {
        at.error("Invalid value: baseURL must not contain userinfo, query, or fragment");
        return None;
    }
    text.parse()
        .map_err(|_| at.error("Invalid value: baseURL must be a URL"))
        .ok()
}

fn read_auth(at: &Reader<'_>) -> Option<ProviderAuth> {
    let mut fields = at.object()?;
    let scheme = fields
        .optional("scheme")
        .map(|scheme| scheme.one_of(SCHEMES));
    let secret = fields
        .required("secretRef")
        .and_then(|secret| secret.object());
    fields.finish();
    let mut secret = secret?;
    let name = required_text(&mut secret, "name", "secret name is required");
    let key = required_text(&mut secret, "key", "secret key is required");
    if let Some(optional) = secret.optional("optional")
        && optional.boolean() == Some(true)
    {
        optional.invalid(true, "optional must be false or unset");
    }
    secret.finish();
    Some(ProviderAuth {
        scheme: scheme.map_or(Some(None), |scheme| scheme.map(Some))?,
        secret: name?,
        key: key?,
    })
}

fn required_text(fields: &mut Fields<'_>, name: &'static str, message: &str) -> Option<String> {
    let at = fields.required_or(name, message)?;
    let text = at.string()?;
    if text.is_empty() {
        at.missing(message);
    }
    Some(text.to_owned())
}

fn read_headers(at: &Reader<'_>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, at) in at.entries().unwrap_or_default() {
        let Some(value) = at.string() else { continue };
        match HeaderName::from_bytes(name.as_bytes()) {
            Err(_) => at.invalid(format_args!("{name:?}"), "header name is invalid"),
            Ok(parsed) if RESERVED_HEADERS.contains(&parsed.as_str()) => {
                at.invalid(
                    format_args!("{name:?}"),
                    "header is reserved and cannot be configured as a static header",
                );
            }
            Ok(_) => {}
        }
        if value.contains(['\r', '\n']) {
            // The value stays out of the message: people put keys into headers.
            at.error("Invalid value: header value must not contain CR or LF");
        }
        headers.insert(name.to_owned(), value.to_owned());
    }
    headers
}
