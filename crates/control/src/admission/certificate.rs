//! The webhook's own certificate: one authority for one server, made by the router.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::fmt;

/// A certificate, its key, and the authority that a client has to trust, each in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The server's certificate, the chain after it.
    pub certificate: Vec<u8>,
    /// The server's private key.
    pub key: Vec<u8>,
    /// The authority; `None` where it is not known.
    pub authority: Option<Vec<u8>>,
}

impl fmt::Debug for Pem {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").finish_non_exhaustive()
    }
}

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate: {0}")]
pub struct CertificateError(#[from] rcgen::Error);

/// Makes a certificate for these DNS names, with an authority whose key is forgotten at once: nobody can sign with it.
///
/// Both are valid from the first day of `year` to the last one ten years later, the time that the original router gives.
/// The first day, not today, so that a cluster whose clocks differ trusts it at once.
///
/// # Errors
/// When there are no names, a name is no DNS name, or there is no randomness.
pub fn generate(names: &[String], year: i32) -> Result<Pem, CertificateError> {
    let (from, to) = (date_time_ymd(year, 1, 1), date_time_ymd(year + 10, 12, 31));
    let subject = |name: &str| {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, name);
        subject
    };

    let mut authority = CertificateParams::default();
    authority.distinguished_name = subject("kthena-router-webhook-ca");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    (authority.not_before, authority.not_after) = (from, to);
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;

    let mut server = CertificateParams::new(names)?;
    // At most 64 characters are allowed in a common name; the names that count are the alternative ones.
    server.distinguished_name = subject("kthena-router-webhook");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    (server.not_before, server.not_after) = (from, to);
    let server_key = KeyPair::generate()?;
    let issuer = Issuer::new(authority, authority_key);
    let server_certificate = server.signed_by(&server_key, &issuer)?;

    Ok(Pem {
        certificate: server_certificate.pem().into_bytes(),
        key: server_key.serialize_pem().into_bytes(),
        authority: Some(authority_certificate.pem().into_bytes()),
    })
}
