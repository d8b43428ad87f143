//! `kthena-router sim-engine`: one simulated engine in the foreground.

use crate::flags::{SimEngine, SimParams};
use crate::signals::Signals;
use anyhow::Context;
use sim::cli::SimEngineOptions;
use sim::live::{Disaggregation, EngineKind, LiveOptions, PdConnector};
use sim::model::EngineParams;
use std::process::ExitCode;

/// Runs until a signal ends it.
#[allow(clippy::print_stdout, reason = "the address is the command's output")]
pub(crate) fn run(flags: SimEngine) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let names = flags.names.join(", ");
        let disaggregation = disaggregation(&flags);
        let options = SimEngineOptions {
            host: flags.host,
            port: flags.port,
            params: params(&flags.params, EngineParams::datacentre_7b()),
            live: LiveOptions {
                model_names: flags.names,
                seed: flags.seed,
                time_scale: flags.time_scale,
                engine: flags.engine,
                disaggregation,
                ..LiveOptions::default()
            },
        };
        sim::cli::run(options, signals.next(), |address| {
            println!("simulated engine for {names} on http://{address}");
        })
        .await?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The engine's part, if it does prefill or decode only.
fn disaggregation(flags: &SimEngine) -> Option<Disaggregation> {
    let usual = match flags.engine {
        EngineKind::Vllm => PdConnector::Nixl,
        EngineKind::Sglang => PdConnector::Sglang,
    };
    Some(Disaggregation {
        role: flags.role?,
        connector: flags.kv_connector.unwrap_or(usual),
        bootstrap_port: flags.disaggregation_bootstrap_port,
    })
}

/// A preset with what the flags say.
pub(crate) fn params(flags: &SimParams, preset: EngineParams) -> EngineParams {
    EngineParams {
        block_size: flags.block_size.unwrap_or(preset.block_size),
        num_blocks: flags.num_gpu_blocks.unwrap_or(preset.num_blocks),
        max_model_len: flags.max_model_len.unwrap_or(preset.max_model_len),
        max_num_seqs: flags.max_num_seqs.unwrap_or(preset.max_num_seqs),
        max_num_batched_tokens: flags
            .max_num_batched_tokens
            .unwrap_or(preset.max_num_batched_tokens),
        max_num_queued_reqs: flags.max_num_queued_reqs.or(preset.max_num_queued_reqs),
        step_overhead: flags.step_overhead.unwrap_or(preset.step_overhead),
        weight_read: flags.weight_read.unwrap_or(preset.weight_read),
        compute_per_token: flags.compute_per_token.unwrap_or(preset.compute_per_token),
        ..preset
    }
}
