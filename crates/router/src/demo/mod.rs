//! `kthena-router demo`: what prefix-aware routing is worth, on one machine, in 20 seconds.
//!
//! Four simulated engines and the router run in this process and talk HTTP over loopback. The same traffic is played
//! twice, each time with fresh engines: once with the `random` score plugin, once with the default plugins. Other
//! scenarios compare other pairs of settings: [`pd`], [`sticky`].

mod fleet;
mod page;
mod pd;
mod progress;
mod stack;
mod sticky;

use crate::flags::{Demo, Scenario as Shown};
use crate::run::wind_down;
use crate::signals::Signals;
use crate::table::Table;
use anyhow::Context;
use page::Page;
use progress::Progress;
use routing::schedule::SchedulerConfig;
use serde_json::json;
use sim::load::{Report, Scenario, play};
use sim::report::{Column, Summary};
use stack::{Layout, Stack};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// Engines of the demo.
const ENGINES: usize = 4;
/// Name of the model that they serve.
const MODEL: &str = "demo";
/// How long the unchanged scenario takes, both passes together.
const FULL_TIME: Duration = Duration::from_millis(12_500);
/// Longest wait for streams under way when the demo is ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Plays both passes, prints the table, and serves on unless told to end.
#[allow(clippy::print_stdout, reason = "the table is the command's output")]
pub(crate) fn run(options: &Demo) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        if let Some(port) = options.port {
            // Needed for the second pass only. Who chose one that is taken learns it now.
            drop(stack::listen(port).await?);
        }
        let mut page = Page::bind().await?;
        println!("watch it live: {}/\n", page.url());
        let played = tokio::select! {
            played = play_scenario(options, &mut page) => played?,
            () = signals.next() => {
                println!();
                return Ok(ExitCode::SUCCESS);
            }
        };
        println!("\n{}", played.table);
        if options.exit {
            played.stack.stop(PATIENCE).await;
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", serving(&played.stack, &page, options.scenario));
        signals.next().await;
        println!();
        let code = wind_down(&played.stack.app, PATIENCE, &mut signals).await;
        played.stack.stop(PATIENCE).await;
        Ok(code)
    })
}

struct Played {
    table: Table,
    /// The router of the second pass and its engines, still running.
    stack: Stack,
}

async fn play_scenario(options: &Demo, page: &mut Page) -> anyhow::Result<Played> {
    match options.scenario {
        Shown::Prefix => play_both(options, page).await,
        Shown::Pd => pd::play_both(options, page).await,
        Shown::Sticky => sticky::play_both(options, page).await,
    }
}

#[allow(clippy::print_stdout, reason = "says what the demo does")]
async fn play_both(options: &Demo, page: &mut Page) -> anyhow::Result<Played> {
    let scenario = scaled(Scenario::demo(MODEL), options.time);
    println!(
        "{ENGINES} simulated engines (a 7B model on one GPU each), {} chats in {} groups that share a {}-token system \
         prompt, {} turns each.\nThe same traffic twice, on fresh engines:\n",
        scenario.users, scenario.groups, scenario.system_tokens, scenario.turns,
    );
    let stack = Stack::start(random()?, None, Layout::Alike, page).await?;
    let before = pass("random", &stack, &scenario, options.seed).await;
    stack.stop(PATIENCE).await;

    let stack = Stack::start(
        SchedulerConfig::default(),
        options.port,
        Layout::Alike,
        page,
    )
    .await?;
    let after = pass("default plugins", &stack, &scenario, options.seed).await;

    let headings = Column::LIVE.map(Column::heading);
    let mut table = Table::with(std::iter::once("score plugins").chain(headings));
    table.row(row("random", &before));
    table.row(row("default (prefix-cache …)", &after));
    Ok(Played { table, stack })
}

/// Pods are chosen at random.
fn random() -> anyhow::Result<SchedulerConfig> {
    let random = json!({"plugins": {"Score": {"enabled": [{"name": "random", "weight": 1}]}}});
    Ok(SchedulerConfig::from_value(&random)?.0)
}

async fn pass(name: &'static str, stack: &Stack, scenario: &Scenario, seed: u64) -> Report {
    let scenario = Scenario {
        engines: stack.engine_addresses(),
        ..scenario.clone()
    };
    let mut progress = Progress::new(name);
    let report = play(&stack.url(), &scenario, seed, |at| progress.show(&at)).await;
    progress.done();
    if let Some(error) = &report.first_error {
        tracing::warn!("{} requests failed, the first one: {error}", report.errors);
    }
    report
}

/// The scenario with as many users as the time allows.
fn scaled(full: Scenario, time: Duration) -> Scenario {
    let share = time.as_secs_f64() / FULL_TIME.as_secs_f64();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let users = ((full.users as f64 * share).round() as usize).max(ENGINES);
    Scenario { users, ..full }
}

fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

fn row(name: &str, report: &Report) -> Vec<String> {
    let summary = Summary::from(report);
    let cells = Column::LIVE.map(|column| column.cell(&summary));
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn serving(stack: &Stack, page: &Page, shown: Shown) -> String {
    let (url, debug) = (stack.url(), page.url());
    let (with, header) = match shown {
        Shown::Prefix | Shown::Pd => ("the default plugins", ""),
        Shown::Sticky => ("session sticky", "-i -H 'X-Session-ID: me' "),
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "Serving on with {with}. Base URL for OpenAI clients: {url}/v1\n\n\
         curl -s {header}{url}/v1/chat/completions -H 'Content-Type: application/json' \\\n  \
         -d '{{\"model\":\"{MODEL}\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'\n\n\
         metrics  {}/metrics\n\
         pods     {debug}/debug/config_dump/pods\n\
         live     {debug}/\n\n\
         Ctrl-C ends it.",
        stack.metrics_url(),
    );
    text
}
