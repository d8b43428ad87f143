//! The validating admission webhook without its HTTP server: what an API server asks before it stores an object, and the
//! certificate that it trusts.
//!
//! [`answer`] is a pure function from one AdmissionReview to another. The rules are those of [`crate::resources`], which
//! also hold for manifests in files and for `validate`.

mod certificate;
mod cluster;
mod review;

pub use certificate::{CertificateError, Pem, generate};
pub use cluster::{Store, StoreError};
pub use review::{BadReview, Verdict, answer, review};
