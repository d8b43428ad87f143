//! `cargo run -p xtask -- icount`, `… -- replay-docs PROGRAM`: what the house needs beside cargo.
#![allow(clippy::print_stdout, reason = "this program is for its output")]

mod icount;
mod replay_docs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("icount") => icount::run(),
        Some("replay-docs") => replay_docs::run(std::env::args().skip(2)),
        _ => Err("usage: cargo run -p xtask -- icount | replay-docs PROGRAM [--traces DIR]".into()),
    }
}
