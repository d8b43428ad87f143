//! engine: an OpenAI-compatible engine that answers at once, so that what stands in front of it is the bottleneck.
//!
//!     engine PORT [ENGINES [KIB]]  ENGINES (1) engines in one process, on PORT, PORT+1, .., whose metrics page has
//!                                  at least KIB KiB (a real vLLM's has 70)
//!
//! Chat requests get one completion with usage, or, when the body's end asks for a stream, 20 events and `[DONE]`, each
//! written by itself as engines do. `/metrics` and `/v1/models` are vLLM's. For the one who measures:
//! `/mock/interval/MICROSECONDS` sets the pause between events, `/mock/stats` is `REQUESTS BODY-BYTES`, `/mock/reset`
//! sets both to 0.

use router_bench::Conn;
use std::cell::Cell;
use std::fmt::Write as _;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

const EVENTS: usize = 20;
/// Bytes at the end of a body in which `"stream":true` is looked for: it stands behind the messages.
const TAIL: usize = 512;
const STREAM_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n";

struct Engine {
    completion: Vec<u8>,
    events: Vec<Vec<u8>>,
    metrics: Vec<u8>,
    models: Vec<u8>,
    interval: Cell<Duration>,
    requests: Cell<u64>,
    body_bytes: Cell<u64>,
}

impl Engine {
    fn new(page_kib: u16) -> Self {
        Self {
            completion: completion(),
            events: events(),
            metrics: metrics(page_kib),
            models: answer(
                "200 OK",
                r#"{"object":"list","data":[{"id":"mock-model","object":"model","created":1760000000,"owned_by":"vllm","root":"mock-model","parent":null,"max_model_len":1048576,"permission":[]}]}"#,
            ),
            interval: Cell::new(Duration::ZERO),
            requests: Cell::new(0),
            body_bytes: Cell::new(0),
        }
    }
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + body).into_bytes()
}

fn completion() -> Vec<u8> {
    answer(
        "200 OK",
        r#"{"id":"chatcmpl-7f3a9c1e5b2d4860a1c3e5f7","object":"chat.completion","created":1760000000,"model":"mock-model","choices":[{"index":0,"message":{"role":"assistant","content":"The quick brown fox jumps over the lazy dog near the river."},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":128,"completion_tokens":14,"total_tokens":142,"prompt_tokens_details":{"cached_tokens":64}}}"#,
    )
}

/// The events of a stream, each as one HTTP chunk: a role, words, an end with usage, `[DONE]`.
fn events() -> Vec<Vec<u8>> {
    const WORDS: [&str; 5] = [" the", " quick", " brown", " fox", " jumps"];
    let head = r#"{"id":"chatcmpl-7f3a9c1e5b2d4860a1c3e5f7","object":"chat.completion.chunk","created":1760000000,"model":"mock-model","choices":[{"index":0,"#;
    let event = |i: usize| match i {
        0 => format!(
            r#"{head}"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]}}"#
        ),
        i if i + 1 == EVENTS => format!(
            r#"{head}"delta":{{"content":""}},"logprobs":null,"finish_reason":"stop","stop_reason":null}}],"usage":{{"prompt_tokens":128,"completion_tokens":{EVENTS},"total_tokens":{}}}}}"#,
            128 + EVENTS
        ),
        i => format!(
            r#"{head}"delta":{{"content":"{}"}},"logprobs":null,"finish_reason":null}}]}}"#,
            WORDS[i % 5]
        ),
    };
    let chunk = |data: String| {
        let event = format!("data: {data}\n\n");
        format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
    };
    (0..EVENTS)
        .map(event)
        .chain(["[DONE]".to_owned()])
        .map(chunk)
        .collect()
}

/// A page of the kind that an idle vLLM shows: gauges, counters and histograms, and as many more histograms as fill it.
fn metrics(page_kib: u16) -> Vec<u8> {
    let labels = r#"engine="0",model_name="mock-model""#;
    let mut page = String::new();
    for name in [
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "gpu_cache_usage_perc",
    ] {
        let _ = writeln!(
            page,
            "# HELP vllm:{name} Gauge.\n# TYPE vllm:{name} gauge\nvllm:{name}{{{labels}}} 0.0"
        );
    }
    for name in [
        "prompt_tokens_total",
        "generation_tokens_total",
        "request_success_total",
    ] {
        let _ = writeln!(
            page,
            "# HELP vllm:{name} Counter.\n# TYPE vllm:{name} counter\nvllm:{name}{{{labels}}} 1000.0"
        );
    }
    let bounds = [
        "0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "0.5", "1.0",
        "2.5", "+Inf",
    ];
    let histogram = |name: &str, page: &mut String| {
        let _ = writeln!(
            page,
            "# HELP vllm:{name}_seconds Histogram.\n# TYPE vllm:{name}_seconds histogram"
        );
        for (i, bound) in bounds.iter().enumerate() {
            let _ = writeln!(
                page,
                "vllm:{name}_seconds_bucket{{{labels},le=\"{bound}\"}} {}.0",
                i * 100
            );
        }
        let _ = writeln!(
            page,
            "vllm:{name}_seconds_count{{{labels}}} 1200.0\nvllm:{name}_seconds_sum{{{labels}}} 60.5"
        );
    };
    for name in [
        "time_to_first_token",
        "time_per_output_token",
        "inter_token_latency",
        "e2e_request_latency",
    ] {
        histogram(name, &mut page);
    }
    for more in 0.. {
        if page.len() >= usize::from(page_kib) * 1024 {
            break;
        }
        histogram(&format!("request_part_{more}"), &mut page);
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n";
    format!("{head}content-length: {}\r\n\r\n{page}", page.len()).into_bytes()
}

async fn serve(stream: TcpStream, engine: Rc<Engine>) -> io::Result<()> {
    let mut conn = Conn::new(stream);
    while let Some(head) = conn.request_head().await? {
        let (mut length, mut tail) = (0, Vec::with_capacity(2 * TAIL));
        conn.body(head.framing, |piece| {
            length += piece.len();
            let kept = piece.len().min(TAIL);
            if tail.len() + kept > 2 * TAIL {
                tail.drain(..tail.len() - TAIL);
            }
            tail.extend_from_slice(&piece[piece.len() - kept..]);
        })
        .await?;
        match head.path.as_str() {
            "/v1/chat/completions" => {
                engine.requests.set(engine.requests.get() + 1);
                engine
                    .body_bytes
                    .set(engine.body_bytes.get() + length as u64);
                if memchr::memmem::find(&tail, br#""stream":true"#).is_some() {
                    stream_events(&mut conn, &engine).await?;
                } else {
                    conn.write(&engine.completion).await?;
                }
            }
            "/metrics" => conn.write(&engine.metrics).await?,
            "/v1/models" => conn.write(&engine.models).await?,
            path => conn.write(&control(path, &engine)).await?,
        }
        if !head.keep_alive {
            break;
        }
    }
    Ok(())
}

async fn stream_events(conn: &mut Conn, engine: &Engine) -> io::Result<()> {
    let mut due = Instant::now();
    conn.write(STREAM_HEAD).await?;
    for (i, event) in engine.events.iter().enumerate() {
        // `[DONE]` follows the last event at once.
        if i > 0 && i < EVENTS && !engine.interval.get().is_zero() {
            due += engine.interval.get();
            sleep_until(due).await;
        }
        conn.write(event).await?;
    }
    conn.write(b"0\r\n\r\n").await
}

fn control(path: &str, engine: &Engine) -> Vec<u8> {
    if let Some(micros) = path.strip_prefix("/mock/interval/") {
        engine
            .interval
            .set(Duration::from_micros(micros.parse().unwrap_or(0)));
        return answer("200 OK", "");
    }
    match path {
        "/health" => answer("200 OK", ""),
        "/mock/stats" => answer(
            "200 OK",
            &format!("{} {}", engine.requests.get(), engine.body_bytes.get()),
        ),
        "/mock/reset" => {
            engine.requests.set(0);
            engine.body_bytes.set(0);
            answer("200 OK", "")
        }
        _ => answer("404 Not Found", r#"{"detail":"Not Found"}"#),
    }
}

async fn listen(port: u16, page_kib: u16) -> io::Result<()> {
    let engine = Rc::new(Engine::new(page_kib));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::task::spawn_local(serve(stream, Rc::clone(&engine)));
    }
}

fn main() -> io::Result<()> {
    let numbers: Vec<u16> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let [port, engines, page_kib] = match numbers[..] {
        [port] => [port, 1, 0],
        [port, engines] => [port, engines, 0],
        [port, engines, page_kib] => [port, engines, page_kib],
        _ => return Err(io::Error::other("usage: engine PORT [ENGINES [KIB]]")),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listeners: Vec<_> = (0..engines)
            .map(|i| tokio::task::spawn_local(listen(port + i, page_kib)))
            .collect();
        for listener in listeners {
            listener.await.map_err(io::Error::other)??;
        }
        Ok(())
    })
}
