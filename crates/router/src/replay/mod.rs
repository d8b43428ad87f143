//! `kthena-router replay`: a trace in virtual time, over this router's own decisions and simulated engines.

mod flags;
mod merged;
mod progress;
mod tuned;

pub(crate) use flags::Flags;

use crate::output::print;
use crate::scheduler::{read, read_whole};
use crate::sim_engine::params;
use crate::table::Table;
use anyhow::Context;
use flags::{Command, Compare, Goal, One, Output, Play, Preset, Tune};
use merged::merged;
use progress::{Bar, Line};
use routing::schedule::SchedulerConfig;
use serde_json::{Value, json};
use sim::model::EngineParams;
use sim::replay::{
    Choice, Objective, Outcome, Setup, Shaping, Tuning, Workload, generate, page, replay, tune,
};
use sim::report::Column;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::ExitCode;

/// The reference that is no router.
const ORACLE: &str = "oracle";
/// Requests of made traffic, where not given.
const REQUESTS: usize = 2_000;
/// Requests a second of made traffic, where not given.
const RATE: f64 = 4.0;

/// Plays and prints.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<ExitCode> {
    match &flags.command {
        None => one(&flags.one),
        Some(Command::Compare(options)) => compare(options),
        Some(Command::Tune(options)) => search(options),
    }
}

/// A configuration with its name.
struct Named {
    name: String,
    /// None is the oracle.
    config: Option<SchedulerConfig>,
}

fn one(options: &One) -> anyhow::Result<ExitCode> {
    let config = match &options.router_config {
        None => named("default plugins", SchedulerConfig::default()),
        Some(path) => from_file(path)?,
    };
    play_all(&options.play, &options.output, &[config])
}

fn compare(options: &Compare) -> anyhow::Result<ExitCode> {
    let mut configs = Vec::new();
    if !options.only {
        configs.push(named("random", only("random")?));
        configs.push(named("least-request", only("least-request")?));
        configs.push(named("default plugins", SchedulerConfig::default()));
    }
    for path in &options.configs {
        configs.push(from_file(path)?);
    }
    // Files of one name are told apart by their paths.
    for (index, path) in options.configs.iter().enumerate() {
        let same = |other: &&Path| stem(other) == stem(path);
        let others = options.configs.iter().map(|p| p.as_path()).filter(same);
        let at = configs.len() - options.configs.len() + index;
        let taken = |name: &str| name == ORACLE || configs[..at].iter().any(|c| c.name == name);
        if others.count() > 1 || taken(&stem(path)) {
            configs[at].name = path.display().to_string();
        }
    }
    if !options.only {
        configs.push(Named {
            name: ORACLE.into(),
            config: None,
        });
    }
    play_all(&options.play, &options.output, &configs)
}

fn play_all(play: &Play, output: &Output, configs: &[Named]) -> anyhow::Result<ExitCode> {
    let workload = workload(play)?;
    let setup = setup(play);
    // Before anything is played: what cannot be written in the end would be lost.
    let mut html = output.html.as_deref().map(create).transpose()?;
    let mut outcomes = Vec::with_capacity(configs.len());
    for Named { name, config } in configs {
        let mut bar = Bar::new(name, workload.requests.len() as u64);
        let choice = config.as_ref().map_or(Choice::Oracle, Choice::Plugins);
        let outcome = replay(name, &workload, &setup, choice, &mut |ended| {
            bar.show(ended)
        });
        bar.clear();
        outcomes.push(outcome?);
    }
    let about = about(&workload, &setup);
    if let (Some(file), Some(path)) = (&mut html, &output.html) {
        file.write_all(page(&about, &outcomes).as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match output.json {
        true => {
            let runs: Vec<_> = outcomes.iter().map(Outcome::json).collect();
            let mut json = described(&about, play, &setup);
            json["runs"] = runs.into();
            format!("{json:#}\n")
        }
        false => format!("{about}\n\n{}\n", table(&outcomes)),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

fn search(options: &Tune) -> anyhow::Result<ExitCode> {
    let (file, start) = match &options.router_config {
        None => (None, SchedulerConfig::default()),
        Some(path) => {
            let (file, start) = read_whole(path)?;
            (Some(file), start)
        }
    };
    let workload = workload(&options.play)?;
    let setup = setup(&options.play);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let tuning = Tuning {
        objective: match options.objective {
            Goal::TtftMean => Objective::TtftMean,
            Goal::TtftP90 => Objective::TtftP90,
            Goal::Uncached => Objective::Uncached,
        },
        candidates: options.candidates,
        held_out: options.held_out,
        threads: options.threads.unwrap_or_else(cores),
    };
    let line = Line::default();
    let tuned = tune(&workload, &setup, &start, &tuning, &|what| line.show(what));
    line.clear();
    let tuned = tuned?;
    let about = about(&workload, &setup);
    let found = &tuned.best.settings;
    let scheduler = match &file {
        None => found.scheduler(),
        Some(file) => merged(&file.scheduler, &found.scheduler()),
    };
    let text = match options.json {
        true => {
            let mut json = described(&about, &options.play, &setup);
            json["tuned"] = tuned::json(&tuned, &scheduler);
            format!("{json:#}\n")
        }
        false => {
            let yaml = match &file {
                None => found.yaml(),
                Some(file) => file.yaml_with(scheduler)?,
            };
            format!("{about}\n\n{}", tuned::text(&tuned, &tuning, &yaml))
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn workload(play: &Play) -> anyhow::Result<Workload> {
    if let Some(kind) = play.generate {
        let count = play.requests.map_or(REQUESTS, |n| n as usize);
        let mut workload = generate(kind, count, play.rate.unwrap_or(RATE), play.seed);
        workload.shape(
            &Shaping {
                speed: play.speed,
                ..Shaping::default()
            },
            play.seed,
        );
        return Ok(workload);
    }
    let path = play
        .trace
        .as_deref()
        .context("neither --trace nor --generate")?;
    let mut workload = match path == Path::new("-") {
        true => Workload::read("standard input", std::io::stdin().lock()),
        false => {
            let file =
                File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            Workload::read(&stem(path), BufReader::new(file))
        }
    }
    .with_context(|| path.display().to_string())?;
    if let [first, ..] = workload.cut_lines[..] {
        tracing::warn!(
            "{}: {} of its lines end in the middle, such as line {first}: they are left out",
            path.display(),
            workload.cut_lines.len(),
        );
    }
    let shaping = Shaping {
        speed: play.speed,
        poisson: play.rate,
        limit: play.requests.map(|n| n as usize),
    };
    workload.shape(&shaping, play.seed);
    Ok(workload)
}

fn setup(play: &Play) -> Setup {
    let preset = match play.engine {
        Preset::Long8b => EngineParams::datacentre_8b_long(),
        Preset::Small7b => EngineParams::datacentre_7b(),
    };
    let mut engine = params(&play.params, preset);
    if let Some(tokens) = play.kv_tokens {
        // One block is a placeholder, which vLLM's figure leaves out as well.
        engine.num_blocks = tokens / engine.block_size.max(1) + 1;
    }
    Setup {
        pods: play.pods,
        engine,
        replicas: play.replicas,
        scrape_interval: play.scrape_interval,
        happenings: play.events.clone(),
        seed: play.seed,
    }
}

/// The setup for a program.
fn described(about: &str, play: &Play, setup: &Setup) -> Value {
    let engine = &setup.engine;
    json!({
        "workload": about,
        "seed": play.seed,
        "setup": {
            "pods": setup.pods,
            "routers": setup.replicas,
            "events": setup.happenings.len(),
            "scrape_interval": setup.scrape_interval,
            "speed": play.speed,
            "engine": {
                "block_size": engine.block_size,
                "num_gpu_blocks": engine.num_blocks,
                "max_model_len": engine.max_model_len,
                "max_num_seqs": engine.max_num_seqs,
                "max_num_batched_tokens": engine.max_num_batched_tokens,
                "step_overhead": engine.step_overhead,
                "weight_read": engine.weight_read,
                "compute_per_token": engine.compute_per_token,
            },
        },
    })
}

fn about(workload: &Workload, setup: &Setup) -> String {
    let routers = match setup.replicas {
        1 => "one router".to_owned(),
        n => format!("{n} routers"),
    };
    let engine = &setup.engine;
    let kv = (engine.num_blocks - 1) * engine.block_size;
    format!(
        "{}: {} requests in {:.0} s, {} pods with {kv} tokens of KV cache each, {routers}, seed {}",
        workload.name,
        workload.requests.len(),
        workload.seconds(),
        setup.pods,
        setup.seed,
    )
}

fn table(outcomes: &[Outcome]) -> Table {
    let headings = Column::REPLAY.map(Column::heading);
    let mut table = Table::with(std::iter::once("").chain(headings));
    for outcome in outcomes {
        let cells = Column::REPLAY.map(|column| column.cell(&outcome.summary));
        table.row(std::iter::once(outcome.name.clone()).chain(cells).collect());
    }
    table
}

fn named(name: &str, config: SchedulerConfig) -> Named {
    Named {
        name: name.to_owned(),
        config: Some(config),
    }
}

fn from_file(path: &Path) -> anyhow::Result<Named> {
    Ok(named(&stem(path), read(path)?))
}

/// One Score plugin alone, without a Filter.
fn only(plugin: &str) -> anyhow::Result<SchedulerConfig> {
    let scheduler = json!({"plugins": {"Score": {"enabled": [{"name": plugin, "weight": 1}]}}});
    Ok(SchedulerConfig::from_value(&scheduler)?.0)
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    stem.to_string_lossy().into_owned()
}
