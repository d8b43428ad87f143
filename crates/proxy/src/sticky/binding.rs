//! The names of a session, and of what it is bound to.

use routing::fleet::ObjectName;
use sha2::{Digest, Sha256};
use std::fmt;

/// Names a session of one server without saying its key: a key may be a user's name or a cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey {
    server: ObjectName,
    digest: [u8; 32],
}

impl SessionKey {
    /// The session of a server that clients call `key`: SHA-256 of `namespace/server|key`.
    #[must_use]
    pub fn new(server: &ObjectName, key: &[u8]) -> Self {
        let digest = Sha256::new()
            .chain_update(server.as_str())
            .chain_update(b"|")
            .chain_update(key);
        Self {
            server: server.clone(),
            digest: digest.finalize().into(),
        }
    }

    /// The server whose session it is.
    #[must_use]
    pub fn server(&self) -> &ObjectName {
        &self.server
    }

    /// The hash that stands for the session.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// As Redis knows the session.
impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kthena/sticky/")?;
        self.digest.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a session is bound to. Pods are in the namespace of their server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The pod, or the decode pod of a pair.
    pub pod: ObjectName,
    /// The prefill pod of a pair.
    pub prefill: Option<ObjectName>,
}

/// How a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The session is bound as asked for.
    Ours,
    /// Another request was first, and bound it to this.
    Other(Binding),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j2_the_key_layout_is_that_of_the_original() {
        // printf 'default/m|user-1' | sha256sum
        let key = SessionKey::new(&ObjectName::new("default", "m"), b"user-1");
        let wanted =
            "kthena/sticky/afecf583e4823a1936d7ad1b88f35c4c0e41bad30be91fb8f842c8666ae715ae";
        assert_eq!(key.to_string(), wanted);
        assert_eq!(format!("{key:?}"), wanted, "the key itself is never shown");
    }
}
