//! The router as a process.

use crate::setup::write;
use crate::{Answer, Client, Metrics, Pod, Setup, model_server, until, within};
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// What a process has written, line by line.
#[derive(Clone, Debug, Default)]
pub struct Output(Arc<Mutex<Vec<String>>>);

impl Output {
    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits for a line with this text and returns it.
    pub async fn has(&self, text: &str) -> String {
        until(&format!("a line with {text:?}"), async || {
            self.lines().into_iter().find(|line| line.contains(text))
        })
        .await
    }

    fn follow(&self, pipe: impl AsyncRead + Unpin + Send + 'static) -> tokio::task::JoinHandle<()> {
        let kept = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                kept.lock().unwrap().push(line);
            }
        })
    }
}

/// A running router. Dropping it kills it.
#[derive(Debug)]
pub struct Router {
    setup: Setup,
    child: Child,
    readers: Vec<tokio::task::JoinHandle<()>>,
    /// The inference port.
    pub port: u16,
    /// The metrics port.
    pub metrics_port: u16,
    /// The debug port.
    pub debug_port: u16,
    /// Standard output: the access log.
    pub out: Output,
    /// Standard error: the log.
    pub log: Output,
}

impl Router {
    /// Starts the process. If another one has taken a port in the meantime, it is started again on others.
    pub(crate) async fn launch(setup: Setup) -> Self {
        let mut router = Self::spawn(setup);
        for _ in 0..3 {
            until("the router serves or ends", async || {
                let ended = router.child.try_wait().expect("the process can be asked");
                let serves = || {
                    router
                        .log
                        .lines()
                        .iter()
                        .any(|l| l.contains("serving on port"))
                };
                (ended.is_some() || serves()).then_some(())
            })
            .await;
            // One that has ended may have written its last words after they were looked for.
            if let Ok(Some(_)) = router.child.try_wait() {
                for reader in router.readers.drain(..) {
                    let _ = reader.await;
                }
            }
            let ours = !router.setup.flags.iter().any(|f| f.ends_with("port"));
            let taken = |l: &String| l.contains("is already in use");
            if !ours || !router.log.lines().iter().any(taken) {
                break;
            }
            router = Self::spawn(router.setup);
        }
        router
    }

    fn spawn(setup: Setup) -> Self {
        let (manifests, config) = (setup.manifests(), setup.router_config());
        let ports = [free_port(), free_port(), free_port()].map(|port| port.to_string());
        let usual = [
            ("--config-source", "file"),
            ("--config-dir", manifests.to_str().expect("a path in UTF-8")),
            ("--router-config", config.to_str().expect("a path in UTF-8")),
            ("--config-sync-period", "50ms"),
            ("-v", "4"),
            ("--port", &ports[0]),
            ("--metrics-port", &ports[1]),
            ("--debug-port", &ports[2]),
        ];
        let given = |flag: &str| setup.flags.iter().position(|f| f == flag);
        let mut command = Command::new(&setup.program);
        for (flag, value) in usual.into_iter().filter(|(flag, _)| given(flag).is_none()) {
            command.args([flag, value]);
        }
        // Off unless a test is about it: it has a port of its own.
        if !setup
            .flags
            .iter()
            .any(|f| f.starts_with("--enable-webhook"))
        {
            command.arg("--enable-webhook=false");
        }
        let port = |flag: &str, free: &String| {
            let text = given(flag).map_or(free, |at| &setup.flags[at + 1]);
            text.parse().expect("a port")
        };
        let mut child = command
            .args(&setup.flags)
            .env("ACCESS_LOG_FORMAT", "json")
            .env("METRICS_SCRAPE_INTERVAL", "50ms")
            .envs(setup.environment.iter().map(|(k, v)| (k, v)))
            .current_dir(setup.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let (out, log) = (Output::default(), Output::default());
        let readers = vec![
            out.follow(child.stdout.take().unwrap()),
            log.follow(child.stderr.take().unwrap()),
        ];
        Self {
            port: port("--port", &ports[0]),
            metrics_port: port("--metrics-port", &ports[1]),
            debug_port: port("--debug-port", &ports[2]),
            setup,
            child,
            readers,
            out,
            log,
        }
    }

    /// Waits until it is ready.
    pub async fn ready(&self) {
        until("the router is ready", async || {
            let answer = self.get(self.port, "/readyz").await;
            (answer.status == 200).then_some(())
        })
        .await;
    }

    /// The directory of its manifests.
    #[must_use]
    pub fn manifests(&self) -> std::path::PathBuf {
        self.setup.manifests()
    }

    /// The directory of all its files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.setup.dir.path()
    }

    /// Replaces a manifest.
    pub fn write(&self, file: &str, text: &str) {
        write(&self.manifests(), file, text);
    }

    /// Deletes a manifest.
    pub fn delete(&self, file: &str) {
        std::fs::remove_file(self.manifests().join(file)).unwrap();
    }

    /// Makes these the pods of ModelServer `default/m` and waits until that is in force.
    pub async fn set_pods(&self, pods: &[&Pod]) {
        self.write("server.yaml", &model_server("m", pods, ""));
        until("the change is in force", async || {
            let page = self.debug("pods").await;
            let have = page["pods"].as_array().map_or(0, Vec::len);
            (have == pods.len()).then_some(())
        })
        .await;
    }

    /// Connects to the inference port.
    pub async fn connect(&self) -> Client {
        Client::connect(self.port).await
    }

    /// Posts a body on a connection of its own.
    pub async fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        self.post_with(path, &[], body).await
    }

    /// The same, with these headers.
    pub async fn post_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let mut client = self.connect().await;
        client.request("POST", path, headers, body).await;
        client.answer().await
    }

    /// Posts a chat of one message to model `m`.
    pub async fn chat(&self, text: &str) -> Answer {
        self.post("/v1/chat/completions", chat(text)).await
    }

    /// Gets a page of one of its ports.
    pub async fn get(&self, port: u16, path: &str) -> Answer {
        let mut client = Client::connect(port).await;
        client.request("GET", path, &[], "").await;
        client.answer().await
    }

    /// Its metrics page.
    pub async fn metrics(&self) -> Metrics {
        let page = self.get(self.metrics_port, "/metrics").await.text();
        Metrics { page }
    }

    /// A page below `/debug/config_dump/`.
    pub async fn debug(&self, page: &str) -> Value {
        let path = format!("/debug/config_dump/{page}");
        self.get(self.debug_port, &path).await.json()
    }

    /// How it would schedule a request.
    pub async fn explain(&self, path: &str, body: impl AsRef<[u8]>) -> Value {
        let mut client = Client::connect(self.debug_port).await;
        let path = format!("/debug/explain?path={path}");
        client.request("POST", &path, &[], body).await;
        client.answer().await.json()
    }

    /// What a plugin would score each pod of a chat of one message, in the order of the pods; `None` where it does not.
    pub async fn scores(&self, plugin: &str, text: &str) -> Vec<Option<u64>> {
        let answer = self.explain("/v1/chat/completions", chat(text)).await;
        let candidates = answer["candidates"].as_array().expect("candidates");
        candidates
            .iter()
            .map(|c| c["scores"][plugin].as_u64())
            .collect()
    }

    /// Waits for the access log line of the request with this id.
    pub async fn logged(&self, request_id: &str) -> Value {
        let key = format!("\"request_id\":\"{request_id}\"");
        let line = self.out.has(&key).await;
        serde_json::from_str(&line).expect("a line of the access log is JSON")
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let id = self.child.id().expect("the process runs");
        let pid = rustix::process::Pid::from_raw(id.cast_signed()).expect("a process id");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be told");
    }

    /// Waits for its end, and for all it has written; returns the exit code.
    pub async fn exit_code(&mut self) -> Option<i32> {
        let status = within("the process ends", self.child.wait()).await.unwrap();
        for reader in self.readers.drain(..) {
            within("its output ends", reader).await.unwrap();
        }
        status.code()
    }

    /// Ends it and starts it again with the same files.
    pub async fn restart(mut self) -> Self {
        self.terminate();
        self.exit_code().await;
        let router = Self::launch(self.setup).await;
        router.ready().await;
        router
    }
}

fn chat(text: &str) -> String {
    serde_json::json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
}

/// A port below those that the kernel hands out, so that no socket of another test gets it by chance.
pub(crate) fn free_port() -> u16 {
    loop {
        let draw = RandomState::new().build_hasher().finish();
        let port = 18_000 + u16::try_from(draw % 14_000).expect("small");
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}
