//! A scripted pod: the metrics and model pages of an engine, and inference by script.

use crate::message::{Framing, Headers, Wire, framing};
use crate::script::{Act, Script, Step, chat_answer};
use crate::until;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// What a pod's metrics page says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges {
    /// Requests waiting.
    pub waiting: u32,
    /// Requests running.
    pub running: u32,
    /// Share of the KV cache in use, 0..=1.
    pub usage: f64,
    /// Sum (seconds) and count of time to first token.
    pub ttft: (f64, u32),
    /// Sum (seconds) and count of time per output token.
    pub tpot: (f64, u32),
    /// Prompt tokens looked up in the prefix cache and found there; `None` counts none.
    pub cache: Option<(u32, u32)>,
}

/// One inference request as a pod saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request's bytes as they came, head and body.
    pub raw: Vec<u8>,
    /// Request line.
    pub line: String,
    /// Headers as they came.
    pub headers: Headers,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    /// When it was complete.
    pub at: Instant,
    /// The router hung up before the answer was complete.
    pub left: bool,
    /// The script came to its end.
    pub done: bool,
}

#[derive(Debug)]
struct State {
    /// `None`: the page is empty.
    gauges: Option<Gauges>,
    scrapes: usize,
    /// `None`: the list never comes.
    models: Option<Vec<String>>,
    usual: Script,
    next: VecDeque<Script>,
    seen: Vec<Seen>,
    connections: usize,
}

/// A scripted pod on a free port of loopback. Dropping it closes its listener.
#[derive(Debug)]
pub struct Pod {
    port: u16,
    state: Arc<Mutex<State>>,
    accepting: AbortHandle,
}

impl Pod {
    /// A pod that answers every request with [`chat_answer`].
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1", 0).await
    }

    /// The same on this address of loopback; port 0 takes a free one. Pods of one ModelServer of a cluster share a port.
    pub async fn start_at(ip: &str, port: u16) -> Self {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            gauges: Some(Gauges::default()),
            scrapes: 0,
            models: Some(vec!["m".into()]),
            usual: Script::json(200, chat_answer()),
            next: VecDeque::new(),
            seen: Vec::new(),
            connections: 0,
        }));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Self {
            port,
            state,
            accepting,
        }
    }

    /// Several of them.
    pub async fn several<const N: usize>() -> [Self; N] {
        let mut pods = Vec::with_capacity(N);
        for _ in 0..N {
            pods.push(Self::start().await);
        }
        pods.try_into().expect("N pods were started")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on every request is answered so.
    pub fn answers(&self, script: Script) {
        self.state().usual = script;
    }

    /// The next request that has no script yet is answered so.
    pub fn next(&self, script: Script) {
        self.state().next.push_back(script);
    }

    /// The requests so far, in the order of their ends.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    /// The only request so far.
    #[must_use]
    pub fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "requests at the pod");
        seen[0].clone()
    }

    /// Waits until there were `count` requests and returns the last of them.
    pub async fn request(&self, count: usize) -> Seen {
        until(&format!("request {count} at the pod"), async || {
            self.state().seen.get(count - 1).cloned()
        })
        .await
    }

    /// Waits until the router has hung up on the `count`th request.
    pub async fn left(&self, count: usize) {
        until("the router hangs up on the pod", async || {
            self.state()
                .seen
                .get(count - 1)
                .is_some_and(|s| s.left)
                .then_some(())
        })
        .await;
    }

    /// Changes its metrics page (`None`: it is empty, as of something that is no engine) and waits until the router has read it.
    pub async fn shows(&self, gauges: Option<Gauges>) {
        let before = {
            let mut state = self.state();
            state.gauges = gauges;
            state.scrapes
        };
        // A router reads a pod's page again only after it has dealt with the page before.
        until("the router reads the metrics page twice", async || {
            (self.state().scrapes >= before + 2).then_some(())
        })
        .await;
    }

    /// Waits until its metrics page was read so often.
    pub async fn scraped(&self, count: usize) {
        until("the router reads the metrics page", async || {
            (self.state().scrapes >= count).then_some(())
        })
        .await;
    }

    /// Changes its metrics page before a router runs.
    pub fn preset(&self, gauges: Option<Gauges>) {
        self.state().gauges = gauges;
    }

    /// Its model list never comes from now on.
    pub fn hides_models(&self) {
        self.state().models = None;
    }

    /// Refuses new connections from now on.
    pub fn refuse(&self) {
        self.accepting.abort();
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) {
    stream.set_nodelay(true).unwrap();
    let (read, mut write) = stream.into_split();
    let mut wire = Wire::new(read);
    let mut number = None;
    while let Ok(Some((line, headers))) = wire.head().await {
        let (body, whole) = wire.body(&mut framing(&headers, Framing::Done)).await;
        if !whole {
            return;
        }
        if is_list(&line) && state.lock().unwrap().models.is_none() {
            return hung_up(&mut wire).await;
        }
        if let Some(page) = page(&line, &state) {
            // Closed each time, so that inference requests have connections of their own.
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                page.len()
            );
            let _ = write.write_all((head + &page).as_bytes()).await;
            return;
        }
        let (index, script) = {
            let mut state = state.lock().unwrap();
            let connection = *number.get_or_insert(state.connections);
            state.connections = state.connections.max(connection + 1);
            state.seen.push(Seen {
                raw: std::mem::take(&mut wire.consumed),
                line,
                headers,
                body,
                connection,
                at: Instant::now(),
                left: false,
                done: false,
            });
            let script = state.next.pop_front();
            (
                state.seen.len() - 1,
                script.unwrap_or_else(|| state.usual.clone()),
            )
        };
        let end = play(script, &mut wire, &mut write).await;
        {
            let seen = &mut state.lock().unwrap().seen[index];
            (seen.left, seen.done) = (end == Played::Left, end == Played::Whole);
        }
        match end {
            Played::Whole => {}
            Played::Fin | Played::Left => return,
            Played::Rst => {
                write.as_ref().set_zero_linger().unwrap();
                write.forget();
                return;
            }
        }
    }
}

fn is_list(line: &str) -> bool {
    line.starts_with("GET /v1/models ")
}

/// The pages that the router reads on its own.
fn page(line: &str, state: &Mutex<State>) -> Option<String> {
    let mut state = state.lock().unwrap();
    if is_list(line) {
        let models: Vec<_> = state
            .models
            .iter()
            .flatten()
            .map(|id| serde_json::json!({"id": id, "object": "model"}))
            .collect();
        return Some(serde_json::json!({"object": "list", "data": models}).to_string());
    }
    if !line.starts_with("GET /metrics ") {
        return None;
    }
    state.scrapes += 1;
    Some(state.gauges.map_or_else(String::new, |g| {
        let cache = g.cache.map_or_else(String::new, |(queried, hit)| {
            format!("vllm:prefix_cache_queries_total {queried}\nvllm:prefix_cache_hits_total {hit}\n")
        });
        format!(
            "{cache}vllm:num_requests_waiting{{engine=\"0\"}} {}\nvllm:num_requests_running{{engine=\"0\"}} {}\n\
             vllm:kv_cache_usage_perc{{engine=\"0\"}} {}\n\
             vllm:time_to_first_token_seconds_sum {}\nvllm:time_to_first_token_seconds_count {}\n\
             vllm:inter_token_latency_seconds_sum {}\nvllm:inter_token_latency_seconds_count {}\n",
            g.waiting, g.running, g.usage, g.ttft.0, g.ttft.1, g.tpot.0, g.tpot.1
        )
    }))
}

#[derive(PartialEq, Eq)]
enum Played {
    Whole,
    Fin,
    Rst,
    Left,
}

async fn play(
    script: Script,
    wire: &mut Wire<OwnedReadHalf>,
    write: &mut OwnedWriteHalf,
) -> Played {
    for step in script.0 {
        let written = match step {
            Step::Send(bytes) => write.write_all(&bytes).await.is_ok(),
            Step::Wait(mut gate) => {
                tokio::select! {
                    _ = gate.wait_for(|open| *open) => true,
                    () = hung_up(wire) => false,
                }
            }
            Step::Follow(acts) => match follow(&acts, wire, write).await {
                Ok(written) => written,
                Err(end) => return end,
            },
            Step::Flood(written) => {
                flood(&written, wire, write).await;
                false
            }
            Step::Hang => {
                hung_up(wire).await;
                false
            }
            Step::Fin => return Played::Fin,
            Step::Rst => return Played::Rst,
        };
        if !written {
            return Played::Left;
        }
    }
    Played::Whole
}

async fn follow(
    acts: &tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<Act>>,
    wire: &mut Wire<OwnedReadHalf>,
    write: &mut OwnedWriteHalf,
) -> Result<bool, Played> {
    let mut acts = acts.lock().await;
    loop {
        let act = tokio::select! {
            act = acts.recv() => act,
            () = hung_up(wire) => return Ok(false),
        };
        match act {
            None => return Ok(true),
            Some(Act::Send(bytes)) => {
                if write.write_all(&bytes).await.is_err() {
                    return Ok(false);
                }
            }
            Some(Act::Fin) => return Err(Played::Fin),
            Some(Act::Rst) => return Err(Played::Rst),
        }
    }
}

async fn flood(written: &AtomicUsize, wire: &mut Wire<OwnedReadHalf>, write: &mut OwnedWriteHalf) {
    let piece = vec![b'a'; 64 << 10];
    loop {
        tokio::select! {
            result = write.write(&piece) => match result {
                Ok(count) => { written.fetch_add(count, Relaxed); }
                Err(_) => return,
            },
            () = hung_up(wire) => return,
        }
    }
}

async fn hung_up(wire: &mut Wire<OwnedReadHalf>) {
    while wire.fill().await {}
}
