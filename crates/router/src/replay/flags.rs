//! The command line of `replay`.

use crate::flags::SimParams;
use clap::{Args, Subcommand, ValueEnum};
use sim::replay::{Generator, Happening};
use std::path::PathBuf;

/// Flags of `kthena-router replay`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) one: One,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The same trace over several configurations, beside random, least-request, the default plugins and an oracle.
    Compare(Compare),
    /// Search the settings that suit a trace best.
    Tune(Tune),
}

/// One configuration.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The routerConfiguration file; the default plugins and arguments where not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) router_config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) play: Play,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// routerConfiguration files.
    #[arg(value_name = "FILE")]
    pub(crate) configs: Vec<PathBuf>,
    /// Only the files, without the references.
    #[arg(long, requires = "configs")]
    pub(crate) only: bool,
    #[command(flatten)]
    pub(crate) play: Play,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// The routerConfiguration file to start from; the default plugins and arguments where not given.
    #[arg(long, value_name = "FILE")]
    pub(crate) router_config: Option<PathBuf>,
    /// What is to be made small.
    #[arg(long, value_enum, default_value_t = Goal::TtftMean)]
    pub(crate) objective: Goal,
    /// Settings that are tried in the first round.
    #[arg(long, default_value_t = 54, value_name = "N", value_parser = count::<1, 10_000>)]
    pub(crate) candidates: usize,
    /// Share of the requests, the last ones, that takes no part in the search and tells what it was worth.
    #[arg(long, default_value_t = 0.3, value_name = "SHARE", value_parser = share)]
    pub(crate) held_out: f64,
    /// Replays at a time; one for each core where not given.
    #[arg(long, value_name = "N", value_parser = count::<1, 1_024>)]
    pub(crate) threads: Option<usize>,
    /// Print JSON instead of the text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) play: Play,
}

/// What a search makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Goal {
    /// The mean time to first token.
    TtftMean,
    /// Its 90th percentile.
    TtftP90,
    /// The share of prompt tokens that no cache holds.
    Uncached,
}

/// Where the outcome goes, beside the table.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print JSON instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// What is played, and on what.
#[derive(Debug, Args)]
pub(crate) struct Play {
    /// A Mooncake trace, or a log written by --record-requests, as JSON lines; - is standard input.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "generate",
        conflicts_with = "generate"
    )]
    pub(crate) trace: Option<PathBuf>,
    /// Made traffic: shared-prefix, prefix-repetition, chat, no-sharing or siblings.
    #[arg(long, value_name = "KIND")]
    pub(crate) generate: Option<Generator>,
    /// Requests: the first ones of a trace, all of it where not given; 2000 of made traffic.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests: Option<u32>,
    /// Requests a second on average, with Poisson arrivals: in place of the times of a trace; 4 for made traffic.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// How many times faster than the times say.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = positive)]
    pub(crate) speed: f64,
    /// Pods at the start.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = count::<1, 4_096>)]
    pub(crate) pods: usize,
    /// Routers behind a balancer that gives them requests in turn.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = count::<1, 256>)]
    pub(crate) replicas: usize,
    /// What each pod runs.
    #[arg(long, value_enum, default_value_t = Preset::Long8b)]
    pub(crate) engine: Preset,
    /// Tokens of each pod's KV cache, as vLLM says at its start ("GPU KV cache size"), in place of --num-gpu-blocks.
    #[arg(long, value_name = "TOKENS", conflicts_with = "num_gpu_blocks")]
    pub(crate) kv_tokens: Option<usize>,
    /// Something that happens: restart:POD@TIME[+AWAY], leave:POD@TIME or join@TIME. May be repeated.
    #[arg(long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<Happening>,
    /// Seconds between two readings of each engine's metrics.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = positive)]
    pub(crate) scrape_interval: f64,
    /// Seed of everything that is drawn.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) params: SimParams,
}

/// An engine's sizes and speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// An 8B model with a context of 131,072 tokens and 403,000 tokens of KV cache on one 80 GB GPU.
    #[value(name = "8b-long")]
    Long8b,
    /// A 7B model with a context of 32,768 tokens and 105,000 tokens of KV cache on one 80 GB GPU.
    #[value(name = "7b")]
    Small7b,
}

/// A whole number from `LEAST` to `MOST`, beyond which a replay would need more memory than there is.
fn count<const LEAST: usize, const MOST: usize>(text: &str) -> Result<usize, String> {
    let number: Option<usize> = text.parse().ok();
    number
        .filter(|number| (LEAST..=MOST).contains(number))
        .ok_or_else(|| format!("must be a whole number from {LEAST} to {MOST}"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err("must be greater than 0".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = positive(text)?;
    match number < 1.0 {
        true => Ok(number),
        false => Err("must be less than 1".into()),
    }
}
