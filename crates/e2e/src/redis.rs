//! A real Redis of a test's own.

use crate::router::free_port;
use crate::{until, within};
use ::redis::{FromRedisValue, RedisResult};
use rustix::process::{Pid, Signal, kill_process};
use std::io::ErrorKind;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// A `redis-server` on a free port of loopback, which keeps nothing on disk. Dropping it kills it.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    password: Option<String>,
    child: Child,
    dir: TempDir,
}

impl Redis {
    /// Starts one and waits until it answers.
    ///
    /// # Panics
    /// When there is no `redis-server` on the PATH. `crates/router/build.rs` knows, so that such a test is ignored there.
    pub async fn start() -> Self {
        Self::launch(None).await
    }

    /// The same for those only who say this password.
    pub async fn start_with(password: &str) -> Self {
        Self::launch(Some(password)).await
    }

    async fn launch(password: Option<&str>) -> Self {
        loop {
            let port = free_port();
            let dir = tempfile::tempdir().unwrap();
            let mut redis = Self {
                port,
                password: password.map(str::to_owned),
                child: spawn(port, password, &dir),
                dir,
            };
            if redis.answers().await {
                return redis;
            }
        }
    }

    /// Whether it comes up; it does not when another process has taken its port.
    async fn answers(&mut self) -> bool {
        until("redis-server answers or ends", async || {
            match self.child.try_wait().expect("the process can be asked") {
                Some(_) => Some(false),
                None => self.call::<String>(&["PING"]).await.ok().map(|_| true),
            }
        })
        .await
    }

    /// `host:port`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Runs one command.
    pub async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.call(words).await.expect("Redis answers")
    }

    async fn call<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let password = self
            .password
            .as_ref()
            .map_or_else(String::new, |p| format!(":{p}@"));
        let client = ::redis::Client::open(format!("redis://{password}{}/", self.address()))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut command = ::redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut connection).await
    }

    /// Ends it at once; what it knew is lost.
    pub async fn kill(&mut self) {
        within("redis-server ends", self.child.kill())
            .await
            .unwrap();
    }

    /// Starts it again, empty, on the same port.
    pub async fn again(&mut self) {
        self.child = spawn(self.port, self.password.as_deref(), &self.dir);
        assert!(self.answers().await, "its port is taken");
    }

    /// Lets it neither answer nor hang up.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("the process runs");
        let pid = Pid::from_raw(id.cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("it can be told");
    }
}

fn spawn(port: u16, password: Option<&str>, dir: &TempDir) -> Child {
    let port = port.to_string();
    let spawned = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .args(
            password
                .iter()
                .flat_map(|password| ["--requirepass", password]),
        )
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    match spawned {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => panic!(
            "this test needs a redis-server on the PATH (Debian: apt-get install redis-server)"
        ),
        Err(error) => panic!("redis-server does not start: {error}"),
    }
}
