//! Secret: credentials of external providers.
//!
//! Only the names of the keys are kept. The values are checked for their syntax and forgotten, as nothing needs them
//! before external providers are served.

use super::meta::{self, Meta};
use crate::fields::{Fields, Reader};
use std::collections::BTreeSet;

/// A checked Secret.
#[derive(Clone, Debug)]
pub struct Secret {
    /// Who it is.
    pub meta: Meta,
    /// Keys of `data` and `stringData`.
    pub keys: BTreeSet<String>,
}

pub(super) fn read(mut fields: Fields<'_>) -> Option<Secret> {
    let meta = meta::read(&mut fields);
    let mut keys = BTreeSet::new();
    for (field, check) in [
        ("data", is_base64 as fn(&str) -> bool),
        ("stringData", |_| true),
    ] {
        if let Some(at) = fields.optional(field) {
            read_values(&at, check, &mut keys);
        }
    }
    let _ = fields.optional("type").and_then(|kind| kind.string());
    let _ = fields
        .optional("immutable")
        .and_then(|immutable| immutable.boolean());
    fields.finish();
    Some(Secret { meta: meta?, keys })
}

fn read_values(at: &Reader<'_>, check: fn(&str) -> bool, keys: &mut BTreeSet<String>) {
    for (key, value) in at.entries().unwrap_or_default() {
        if value.string().is_some_and(|text| !check(text)) {
            value.error("must be base64; plain text goes into stringData");
        }
        keys.insert(key.to_owned());
    }
}

/// RFC 4648 section 4, line breaks allowed as the API server allows them.
fn is_base64(text: &str) -> bool {
    let bytes: Vec<u8> = text
        .bytes()
        .filter(|b| !matches!(b, b'\r' | b'\n'))
        .collect();
    let padding = bytes.iter().rev().take_while(|&&b| b == b'=').count();
    let data = &bytes[..bytes.len() - padding];
    let letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    bytes.len().is_multiple_of(4) && padding <= 2 && data.iter().all(letter)
}
