//! A source that follows an API server, what it published, and what it logged.

use control::{ClusterOptions, ClusterSource, Timing, snapshot};
use e2e::{ApiServer, cluster_pod, custom, until};
use routing::fleet::{Fleet, ObjectName, Pod, PodIds};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Waits as short as they can be where nothing is to be waited for.
pub(crate) fn timing() -> Timing {
    Timing {
        answer: Duration::from_secs(10),
        relist: Duration::from_secs(3600),
        first_pause: Duration::from_millis(10),
        longest_pause: Duration::from_millis(50),
        quiet: Duration::from_millis(5),
        gather: Duration::from_millis(100),
        status_each: Duration::from_millis(20),
        status_any: Duration::from_millis(1),
        status_again: Duration::from_secs(3600),
        status_refused: Duration::from_secs(3600),
    }
}

/// No statuses, and no limit that a test could feel.
pub(crate) fn options() -> ClusterOptions {
    ClusterOptions {
        qps: 10_000.0,
        ..ClusterOptions::default()
    }
}

#[derive(Default)]
struct Published {
    fleet: Arc<Fleet>,
    count: usize,
    up: Vec<bool>,
}

/// A source that runs. Dropping it ends it.
pub(crate) struct Follower {
    published: Arc<Mutex<Published>>,
    task: AbortHandle,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows with the usual options.
pub(crate) fn follow(api: &ApiServer) -> Follower {
    follow_with(api, options(), timing())
}

pub(crate) fn follow_with(api: &ApiServer, options: ClusterOptions, timing: Timing) -> Follower {
    let server = api.url().parse().unwrap();
    let source = ClusterSource::at(server, options, timing).unwrap();
    let published = Arc::new(Mutex::new(Published::default()));
    let (objects, up) = (Arc::clone(&published), Arc::clone(&published));
    let ids = PodIds::default();
    let on_objects = move |found: control::Objects| {
        let mut published = objects.lock().unwrap();
        published.fleet = Arc::new(snapshot::build(&found, &published.fleet, &ids));
        published.count += 1;
    };
    let run = source.run(on_objects, move |now| up.lock().unwrap().up.push(now));
    Follower {
        published,
        task: tokio::spawn(run).abort_handle(),
    }
}

impl Follower {
    /// The newest snapshot.
    pub(crate) fn fleet(&self) -> Arc<Fleet> {
        Arc::clone(&self.published.lock().unwrap().fleet)
    }

    /// Snapshots so far.
    pub(crate) fn count(&self) -> usize {
        self.published.lock().unwrap().count
    }

    /// What it said of the API server: true when it answers again, false when it stopped to.
    pub(crate) fn up(&self) -> Vec<bool> {
        self.published.lock().unwrap().up.clone()
    }

    /// Waits for the first snapshot.
    pub(crate) async fn synced(&self) {
        until("the first snapshot", async || {
            (self.count() > 0).then_some(())
        })
        .await;
    }

    /// Names of all pods, sorted.
    pub(crate) fn pods(&self) -> Vec<String> {
        let fleet = self.fleet();
        let mut names: Vec<_> = fleet
            .pods()
            .into_values()
            .map(|p| p.name.name().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Waits until these are all pods.
    pub(crate) async fn has_pods(&self, names: &[&str]) {
        until(&format!("the pods are {names:?}"), async || {
            (self.count() > 0 && self.pods() == names).then_some(())
        })
        .await;
    }

    pub(crate) fn pod(&self, name: &str) -> Arc<Pod> {
        let fleet = self.fleet();
        let found = fleet.pods().into_values().find(|p| p.name.name() == name);
        Arc::clone(found.unwrap_or_else(|| panic!("no pod {name}")))
    }

    /// Waits until the model is routed to this server, or to none.
    pub(crate) async fn routes(&self, model: &str, server: Option<&str>) {
        until(&format!("{model} goes to {server:?}"), async || {
            let fleet = self.fleet();
            let first = fleet.routes_for(model).map(|(routes, _)| &routes[0]);
            let target = first.map(|route| match &route.rules[0].targets[0].to {
                routing::fleet::TargetRef::Server(name) => name.name().to_owned(),
                routing::fleet::TargetRef::External(name) => format!("external {name}"),
            });
            (self.count() > 0 && target.as_deref() == server).then_some(())
        })
        .await;
    }

    pub(crate) fn has_server(&self, name: &str) -> bool {
        let name = ObjectName::new("default", name);
        self.fleet().server(&name).is_some()
    }
}

/// A ModelServer for pods with the label `app: NAME`.
pub(crate) fn server(name: &str) -> Value {
    server_with(name, json!({"app": name}))
}

pub(crate) fn server_with(name: &str, labels: Value) -> Value {
    let spec = json!({
        "model": "org/model",
        "inferenceEngine": "vLLM",
        "workloadSelector": {"matchLabels": labels, "pdGroup": null},
        "workloadPort": {"port": 8000, "protocol": "http"},
    });
    custom("ModelServer", name, spec)
}

/// A ModelRoute that sends a model to a server.
pub(crate) fn route(name: &str, model: &str, server: &str) -> Value {
    let rules =
        json!([{"name": "all", "targetModels": [{"modelServerName": server, "weight": 100}]}]);
    custom(
        "ModelRoute",
        name,
        json!({"modelName": model, "rules": rules}),
    )
}

/// What was logged on this thread, on which all tasks of a test run.
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

thread_local! {
    static LINES: RefCell<Option<Arc<Mutex<Vec<u8>>>>> = const { RefCell::new(None) };
}

/// Writes to the log of the thread, if it has one. A subscriber of each thread's own would now and then get nothing: the
/// interest in a callsite is settled once, perhaps on a thread that has none.
struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow(|lines| {
            if let Some(lines) = lines {
                lines.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    pub(crate) fn start() -> Self {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .without_time()
            .with_writer(|| Writer);
        let ours = tracing_subscriber::filter::Targets::new()
            .with_target("control", tracing_subscriber::filter::LevelFilter::INFO);
        // It is there already, unless this is the first.
        let _ = tracing_subscriber::registry()
            .with(lines)
            .with(ours)
            .try_init();
        let log = Self(Arc::default());
        LINES.set(Some(Arc::clone(&log.0)));
        log
    }

    /// The lines so far with this text.
    pub(crate) fn with(&self, text: &str) -> Vec<String> {
        let all = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = all.lines().filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }

    /// Waits for a line with this text and returns it.
    pub(crate) async fn has(&self, text: &str) -> String {
        until(&format!("a line with {text:?}"), async || {
            self.with(text).pop()
        })
        .await
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LINES.set(None);
    }
}

/// An API server with ModelServer `m` and the ready pods `a` and `b` of it.
pub(crate) async fn two_pods() -> ApiServer {
    let api = ApiServer::start().await;
    api.put("modelservers", server("m"));
    for (name, ip) in [("a", "10.0.0.1"), ("b", "10.0.0.2")] {
        api.put("pods", cluster_pod(name, ip, &[("app", "m")]));
    }
    api
}
