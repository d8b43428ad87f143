//! Sets `cfg(redis_server)` where a `redis-server` is on the PATH: the tests that start one are ignored elsewhere, and say so.
//! Nothing of the program depends on it.

#![allow(
    clippy::print_stdout,
    reason = "what a build script prints is its result"
)]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(redis_server)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PATH");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .filter(|folder| folder.is_dir())
        .collect();
    let mut programs = folders.iter().map(|folder| folder.join("redis-server"));
    match programs.find(|program| program.is_file()) {
        Some(program) => {
            println!("cargo:rustc-cfg=redis_server");
            println!("cargo:rerun-if-changed={}", program.display());
        }
        // It may be installed into any of them.
        None => {
            for folder in folders {
                println!("cargo:rerun-if-changed={}", folder.display());
            }
        }
    }
}
