//! `cargo run -p xtask -- icount`: what the house needs beside cargo.
#![allow(clippy::print_stdout, reason = "this program is for its output")]

mod icount;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("icount") => icount::run(),
        _ => Err("usage: cargo run -p xtask -- icount".into()),
    }
}
