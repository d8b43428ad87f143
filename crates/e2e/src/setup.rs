//! How a router is to be started.

use crate::{ApiServer, Pod, Router, model_route, model_server, scheduler};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files, flags and environment of a router: by default the model `m` on ModelServer `default/m`, and prefix-cache as
/// the only Score plugin.
#[derive(Debug)]
pub struct Setup {
    pub(crate) program: PathBuf,
    pub(crate) dir: TempDir,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) flags: Vec<String>,
}

impl Setup {
    /// For this program.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("manifests")).unwrap();
        let setup = Self {
            program: PathBuf::from(program.as_ref()),
            dir,
            environment: Vec::new(),
            flags: Vec::new(),
        };
        setup
            .config(&scheduler(&[("prefix-cache", 1)], "{}"))
            .manifest("route.yaml", &model_route("m", "m", "m"))
    }

    /// The pods of ModelServer `default/m`: `default/m:p0`, `default/m:p1` …
    #[must_use]
    pub fn pods(self, pods: &[&Pod]) -> Self {
        self.server(pods, "")
    }

    /// The same, with further lines of its spec, each indented by two.
    #[must_use]
    pub fn server(self, pods: &[&Pod], extra: &str) -> Self {
        let text = model_server("m", pods, extra);
        self.manifest("server.yaml", &text)
    }

    /// Another file in the directory of manifests, or another text of one.
    #[must_use]
    pub fn manifest(self, file: &str, text: &str) -> Self {
        write(&self.manifests(), file, text);
        self
    }

    /// The routerConfiguration.
    #[must_use]
    pub fn config(self, text: &str) -> Self {
        write(self.dir.path(), "routerConfiguration.yaml", text);
        self
    }

    /// An environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Further flags, each with its value in the next item; they take the place of the usual ones.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&f| f.to_owned()));
        self
    }

    /// A cluster's API server in place of the manifests.
    #[must_use]
    pub fn cluster(self, api: &ApiServer) -> Self {
        let kubeconfig = api.kubeconfig(self.dir.path());
        self.flags(&["--config-source", "kubernetes"])
            .env("KUBECONFIG", &kubeconfig.to_string_lossy())
    }

    pub(crate) fn manifests(&self) -> PathBuf {
        self.dir.path().join("manifests")
    }

    pub(crate) fn router_config(&self) -> PathBuf {
        self.dir.path().join("routerConfiguration.yaml")
    }

    /// Starts a router and waits until it is ready.
    pub async fn start(self) -> Router {
        let router = self.launch().await;
        router.ready().await;
        router
    }

    /// Starts a router that may not come up.
    pub async fn launch(self) -> Router {
        Router::launch(self).await
    }
}

/// Replaces a file in one step, as editors and the kubelet do.
pub(crate) fn write(dir: &Path, file: &str, text: &str) {
    let draft = dir.join(".draft");
    std::fs::write(&draft, text).unwrap();
    std::fs::rename(draft, dir.join(file)).unwrap();
}
