//! One AdmissionReview in, one out.
//!
//! The wire format is `admission.k8s.io/v1`:
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>.

use crate::node::Node;
use crate::problem::{Problem, Severity, Sink};
use crate::resources::{self, Kind, Objects};
use serde::Deserialize;
use serde_json::{Value, json};

/// API version of the reviews.
const API_VERSION: &str = "admission.k8s.io/v1";
/// Warnings that an API server passes on: it cuts longer ones, and drops what is beyond 4096 characters in all.
const MAX_WARNING: usize = 256;
const MAX_WARNINGS: usize = 16;

/// What the router says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why the object is refused, in the words that `kubectl` shows; `None` if it is allowed.
    pub refusal: Option<String>,
    /// What `kubectl` should tell the user although the object is allowed.
    pub warnings: Vec<String>,
}

/// Why a request is not a review. The text is for the answer to it.
#[derive(Debug, thiserror::Error)]
pub enum BadReview {
    /// Not JSON, or not of the shape of a review.
    #[error("failed to decode body: {0}")]
    Decode(#[from] serde_json::Error),
    /// A review of another version, or something else.
    #[error("unsupported {kind} of {api_version}, expected AdmissionReview of {API_VERSION}")]
    Version {
        /// The `apiVersion` that came.
        api_version: String,
        /// The `kind` that came.
        kind: String,
    },
    /// A review without a request.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// A request without an object, such as a deletion.
    #[error("failed to decode {0}: the request has no object")]
    NoObject(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    object: Value,
}

/// Answers a review of an object of this kind; both are JSON.
///
/// # Errors
/// When the body is not a review that can be answered. That is the fault of the sender: HTTP status 400.
pub fn answer(kind: Kind, body: &[u8]) -> Result<Vec<u8>, BadReview> {
    let asked: Review = serde_json::from_slice(body)?;
    if asked.api_version != API_VERSION || asked.kind != "AdmissionReview" {
        return Err(BadReview::Version {
            api_version: asked.api_version,
            kind: asked.kind,
        });
    }
    let request = asked.request.ok_or(BadReview::NoRequest)?;
    if request.object.is_null() {
        return Err(BadReview::NoObject(kind.as_str()));
    }
    let verdict = review(kind, request.object);
    let mut response = json!({"uid": request.uid, "allowed": verdict.refusal.is_none()});
    if let Some(message) = verdict.refusal {
        response["status"] = json!({"message": message});
    }
    if !verdict.warnings.is_empty() {
        response["warnings"] = verdict.warnings.into();
    }
    let review =
        json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response});
    Ok(review.to_string().into_bytes())
}

/// Judges an object that is to be stored as one of this kind.
///
/// `metadata` is the API server's to judge. An object that is being deleted is allowed whatever it holds: all that can
/// still change is its finalizers, and refusing that would keep it for ever.
#[must_use]
pub fn review(kind: Kind, object: Value) -> Verdict {
    let allowed = Verdict {
        refusal: None,
        warnings: Vec::new(),
    };
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return allowed;
    }
    let problems = problems(kind, object);
    let texts = |severity| {
        problems
            .iter()
            .filter(move |p| p.severity == severity)
            .map(text)
    };
    let errors: Vec<_> = texts(Severity::Error).map(|e| format!("  - {e}")).collect();
    if !errors.is_empty() {
        // The original router's two forms, which tools may look for.
        let message = match kind {
            Kind::ModelServer => format!("validation failed: {}", errors.concat()),
            Kind::ModelRoute | Kind::ExternalModelProvider => {
                format!("validation failed:\n{}", errors.join("\n"))
            }
        };
        return Verdict {
            refusal: Some(message),
            ..allowed
        };
    }
    let warnings = texts(Severity::Warning).chain(texts(Severity::Note));
    Verdict {
        warnings: warnings
            .take(MAX_WARNINGS)
            .map(|text| text.chars().take(MAX_WARNING).collect())
            .collect(),
        ..allowed
    }
}

/// Everything that the rules for manifests say about it.
fn problems(kind: Kind, object: Value) -> Vec<Problem> {
    let sink = Sink::of_object("".into());
    let found = &object["kind"];
    if found != kind.as_str() {
        let message = format!("Invalid value: {found}: must be {}", kind.as_str());
        sink.add(Severity::Error, 0, "kind", message);
        return sink.into_problems();
    }
    resources::read_document(&Node::from_json(object), &sink, &mut Objects::default());
    let mut problems = sink.into_problems();
    problems.retain(|p| p.field != "metadata" && !p.field.starts_with("metadata."));
    problems
}

fn text(problem: &Problem) -> String {
    if problem.field.is_empty() {
        problem.message.clone()
    } else {
        format!("{}: {}", problem.field, problem.message)
    }
}
