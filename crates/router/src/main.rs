//! `kthena-router`: sends requests that share a prompt prefix to the pod that recently served that prefix.

mod absent;
mod crds;
mod demo;
mod doctor;
mod env;
mod explain;
mod flags;
mod http_client;
mod klog;
mod logs;
mod output;
mod replay;
mod run;
mod scheduler;
mod signals;
mod sim_engine;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod validate;
mod webhook;

use clap::Parser;
use flags::{Cli, Command};
use std::process::ExitCode;

// Faster than the system allocator under many threads, and one C file: a build needs no more than a compiler.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logs::init(cli.serve.verbosity);
    let result = match cli.command {
        None => run::run(cli.serve),
        Some(Command::Validate(options)) => validate::run(&options),
        Some(Command::Explain(options)) => explain::run(&options),
        Some(Command::Doctor(options)) => doctor::run(&options),
        Some(Command::SimEngine(options)) => sim_engine::run(options),
        Some(Command::Crds) => crds::run(),
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Replay(options)) => replay::run(&options),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // One line with all causes: it is what an operator sees of a pod that does not start.
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
