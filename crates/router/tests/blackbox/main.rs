//! The router seen from outside: the built program between scripted pods and clients that see every byte.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod auth;
mod cluster;
mod cluster_pairs;
mod cluster_tls;
mod commands;
mod debug;
mod decision_header;
mod disconnect;
mod doctor;
mod doctor_traffic;
mod errors;
mod failover;
mod forwarding;
mod http2;
mod insight;
mod limits;
mod load;
mod logs;
mod metrics;
mod pair;
mod pair_engines;
mod pair_failures;
mod pair_legs;
mod pair_turns;
mod prediction;
mod prefix;
mod protocol;
mod recording;
mod reload;
mod replay;
mod replay_edges;
mod routes;
mod shutdown;
mod startup;
mod sticky;
mod sticky_explain;
mod sticky_pair;
mod sticky_redis;
mod streaming;
mod tls;
mod troubleshooting;
mod usage;
mod webhook;

/// A router of this build, still to be started.
fn setup() -> e2e::Setup {
    e2e::Setup::new(env!("CARGO_BIN_EXE_kthena-router"))
}

/// The same with this pod alone, and with two readings of its metrics page behind it and none to come soon: a reading
/// may borrow the connection that a test has its eye on.
async fn calm(pod: &e2e::Pod) -> e2e::Router {
    let setup = setup().pods(&[pod]).env("METRICS_SCRAPE_INTERVAL", "1h");
    let router = setup.start().await;
    // The first pod of a router is read twice at the start.
    pod.scraped(2).await;
    router
}

/// The path of chats.
const CHAT: &str = "/v1/chat/completions";
/// The path of text completions.
const COMPLETIONS: &str = "/v1/completions";

/// A text completion of model `m`.
fn completion(prompt: &str) -> String {
    serde_json::json!({"model": "m", "prompt": prompt}).to_string()
}

/// A chat of one message to model `m` whose answer is streamed.
fn streamed(text: &str) -> String {
    serde_json::json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]}).to_string()
}

/// A text of this many bytes, another one for every seed.
fn text(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).expect("a letter"))
    };
    (0..bytes).map(letter).collect()
}
