//! load: sends chat requests one after the other over some connections and checks every answer to its last byte.
//!
//!     load URL [-c CONNECTIONS] [-s SECONDS | -n REQUESTS] [-e EVENTS] BODY-FILE ..
//!
//! With -e an answer counts when it has that many events, then `[DONE]`, then a proper end. Times are from the first
//! byte sent to the first byte of the answer's body (ttfb) and to its last. Prints one JSON line, times in microseconds.

use router_bench::Conn;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

struct Options {
    host: String,
    requests: Vec<Vec<u8>>,
    connections: usize,
    time: Duration,
    /// Requests in all; 0 for as many as the time allows.
    count: usize,
    events: usize,
}

#[derive(Default)]
struct Seen {
    sent: Cell<usize>,
    bad: Cell<usize>,
    why: RefCell<String>,
    /// Microseconds.
    ttfb: RefCell<Vec<f64>>,
    total: RefCell<Vec<f64>>,
}

fn options() -> Result<Options, String> {
    let mut files = Vec::new();
    let mut options = Options {
        host: String::new(),
        requests: Vec::new(),
        connections: 32,
        time: Duration::from_secs(2),
        count: 0,
        events: 0,
    };
    let mut path = String::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || {
            args.next()
                .and_then(|n| n.parse::<usize>().ok())
                .ok_or(format!("{arg} needs a number"))
        };
        match arg.as_str() {
            "-c" => options.connections = number()?,
            "-s" => options.time = Duration::from_secs(number()? as u64),
            "-n" => options.count = number()?,
            "-e" => options.events = number()?,
            _ => match arg
                .strip_prefix("http://127.0.0.1:")
                .and_then(|rest| rest.split_once('/'))
            {
                Some((port, rest)) => {
                    (options.host, path) = (format!("127.0.0.1:{port}"), format!("/{rest}"))
                }
                None => files.push(arg),
            },
        }
    }
    for file in files {
        let body = std::fs::read(&file).map_err(|e| format!("{file}: {e}"))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            options.host,
            body.len()
        );
        options.requests.push([head.as_bytes(), &body].concat());
    }
    if options.host.is_empty() || options.requests.is_empty() {
        return Err(
            "usage: load http://127.0.0.1:PORT/PATH [-c N] [-s N | -n N] [-e N] BODY-FILE .."
                .into(),
        );
    }
    Ok(options)
}

async fn exchange(
    conn: &mut Conn,
    request: &[u8],
    events: usize,
    answer: &mut Vec<u8>,
) -> Result<(f64, bool), String> {
    let began = Instant::now();
    answer.clear();
    conn.write(request)
        .await
        .map_err(|e| format!("write: {e}"))?;
    let head = conn
        .response_head()
        .await
        .map_err(|e| format!("head: {e}"))?
        .ok_or("closed before the head")?;
    let mut ttfb = None;
    conn.body(head.framing, |piece| {
        ttfb.get_or_insert_with(|| began.elapsed());
        answer.extend_from_slice(piece);
    })
    .await
    .map_err(|e| format!("body: {e}"))?;
    if head.status != 200 {
        return Err(format!(
            "status {}: {}",
            head.status,
            String::from_utf8_lossy(&answer[..answer.len().min(200)])
        ));
    }
    if events > 0 {
        let seen = memchr::memmem::find_iter(answer, b"data: ").count();
        if seen != events + 1 || !answer.ends_with(b"data: [DONE]\n\n") {
            return Err(format!("{seen} events"));
        }
    } else if memchr::memmem::find(answer, br#""usage""#).is_none() {
        return Err("an answer without usage".into());
    }
    Ok((micros(ttfb.unwrap_or_default()), head.keep_alive))
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

async fn user(options: Rc<Options>, seen: Rc<Seen>, end: Instant) -> io::Result<()> {
    let mut open = None;
    let mut answer = Vec::with_capacity(16 << 10);
    loop {
        let turn = seen.sent.get();
        if if options.count > 0 {
            turn >= options.count
        } else {
            Instant::now() >= end
        } {
            return Ok(());
        }
        seen.sent.set(turn + 1);
        let mut conn = match open.take() {
            Some(conn) => conn,
            None => Conn::new(TcpStream::connect(&options.host).await?),
        };
        let began = Instant::now();
        match exchange(
            &mut conn,
            &options.requests[turn % options.requests.len()],
            options.events,
            &mut answer,
        )
        .await
        {
            Ok((ttfb, keep_alive)) => {
                seen.ttfb.borrow_mut().push(ttfb);
                seen.total.borrow_mut().push(micros(began.elapsed()));
                open = keep_alive.then_some(conn);
            }
            Err(why) => {
                seen.bad.set(seen.bad.get() + 1);
                *seen.why.borrow_mut() = why;
            }
        }
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted
        .get(((sorted.len().max(1) - 1) as f64 * q).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Rc::new(options()?);
    let seen = Rc::new(Seen::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let began = Instant::now();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let end = began + options.time;
        let users = (0..options.connections)
            .map(|_| tokio::task::spawn_local(user(Rc::clone(&options), Rc::clone(&seen), end)))
            .collect::<Vec<_>>();
        for user in users {
            user.await.map_err(io::Error::other)??;
        }
        io::Result::Ok(())
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let (mut ttfb, mut total) = (seen.ttfb.take(), seen.total.take());
    ttfb.sort_unstable_by(f64::total_cmp);
    total.sort_unstable_by(f64::total_cmp);
    println!(
        "{{\"n\":{},\"bad\":{},\"rps\":{:.1},\"p50_us\":{:.1},\"p99_us\":{:.1},\"ttfb_p50_us\":{:.1},\"ttfb_p99_us\":{:.1},\"why\":{:?}}}",
        total.len(),
        seen.bad.get(),
        total.len() as f64 / seconds,
        quantile(&total, 0.5),
        quantile(&total, 0.99),
        quantile(&ttfb, 0.5),
        quantile(&ttfb, 0.99),
        seen.why.borrow(),
    );
    Ok(())
}
