//! Which API a path belongs to.

/// The API of a request, which decides how its prompt is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// `/v1/responses`.
    Responses,
    /// `/v1/messages`.
    Messages,
    /// Any other path, with its label.
    Other(&'static str),
}

/// Paths of OpenAI, Anthropic and vLLM servers that are their own label. A path with a parameter in it is none.
const KNOWN: [&str; 26] = [
    "/v1/embeddings",
    "/v1/rerank",
    "/v2/rerank",
    "/rerank",
    "/v1/score",
    "/score",
    "/pooling",
    "/classify",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/speech",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/images/variations",
    "/v1/models",
    "/v1/moderations",
    "/v1/messages/count_tokens",
    "/v1/chat/completions/batch",
    "/v1/chat/completions/render",
    "/v1/completions/render",
    "/v1/realtime",
    "/tokenize",
    "/detokenize",
    "/generate",
    "/inference/v1/generate",
    "/invocations",
];

impl Api {
    /// The API at a path (without the query).
    #[must_use]
    pub fn of(path: &str) -> Self {
        match path {
            "/v1/chat/completions" => Self::Chat,
            "/v1/completions" => Self::Completions,
            "/v1/responses" => Self::Responses,
            "/v1/messages" => Self::Messages,
            _ => Self::Other(
                KNOWN
                    .into_iter()
                    .find(|&known| known == path)
                    .unwrap_or("other"),
            ),
        }
    }

    /// A label for metrics: the path when it is a known one, otherwise `other`. There is a fixed number of labels.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Other(label) => label,
        }
    }

    /// Whether `stream_options` belongs to this API.
    #[must_use]
    pub fn has_stream_options(self) -> bool {
        matches!(self, Self::Chat | Self::Completions)
    }
}
