//! A directory of manifests to write and read.

#![allow(
    dead_code,
    reason = "every test file is a crate of its own and uses a part"
)]

use control::{Objects, Problem, files};
use std::fs;
use std::path::Path;

/// A directory that is removed at the end.
pub(crate) struct Manifests(tempfile::TempDir);

impl Manifests {
    /// A directory with one file, `a.yaml`.
    pub(crate) fn new(text: &str) -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        dir.write("a.yaml", text);
        dir
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Replaces a file in one step, as editors and the kubelet do.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let draft = self.path().join(".draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.path().join(name)).unwrap();
    }

    /// Its objects.
    pub(crate) fn load(&self) -> Result<Objects, Vec<Problem>> {
        files::load(self.path())
    }

    /// What is said about it, without the directory's name.
    pub(crate) fn said(&self) -> Vec<String> {
        let problems = self
            .load()
            .map_or_else(|problems| problems, |objects| objects.warnings);
        let prefix = format!("{}/", self.path().display());
        problems
            .iter()
            .map(|p| p.to_string().replace(&prefix, ""))
            .collect()
    }
}

/// A ModelServer with these endpoints, in flow style.
pub(crate) fn server(name: &str, endpoints: &[&str]) -> String {
    format!(
        "---\napiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelServer\nmetadata: {{name: {name}}}\nspec:\n  \
         inferenceEngine: vLLM\n  workloadSelector: {{matchLabels: {{app: x}}}}\n  workloadPort: {{port: 8000}}\n  \
         endpoints: [{}]\n",
        endpoints.join(", ")
    )
}

/// A ModelRoute with this metadata and these rules, in flow style.
pub(crate) fn route(metadata: &str, rules: &str) -> String {
    format!(
        "---\napiVersion: networking.serving.volcano.sh/v1alpha1\nkind: ModelRoute\nmetadata: {{{metadata}}}\nspec:\n  \
         modelName: m\n  rules: {rules}\n"
    )
}
