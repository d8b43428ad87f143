//! `--scenario pd`: what long prompts do to answers under way, with prefill on the same engines and on others.

use super::page::Page;
use super::stack::{Layout, Stack};
use super::{ENGINES, MODEL, PATIENCE, Played, ms, pass, scaled};
use crate::flags::Demo;
use crate::table::Table;
use routing::schedule::SchedulerConfig;
use sim::load::{Report, Scenario};

/// Plays the same questions against four engines that do everything, and against two pairs.
#[allow(clippy::print_stdout, reason = "says what the demo does")]
pub(super) async fn play_both(options: &Demo, page: &mut Page) -> anyhow::Result<Played> {
    let scenario = scaled(Scenario::long_prompts(MODEL), options.time);
    println!(
        "{ENGINES} simulated engines (a 7B model on one GPU each), {} questions of about 3000 tokens each, nothing in \
         common.\nThe same traffic twice, on fresh engines: all {ENGINES} doing everything, then {} pairs of prefill and \
         decode:\n",
        scenario.users,
        ENGINES / 2,
    );
    let config = SchedulerConfig::default;
    let stack = Stack::start(config(), None, Layout::Alike, page).await?;
    let together = pass("together", &stack, &scenario, options.seed).await;
    stack.stop(PATIENCE).await;

    let stack = Stack::start(config(), options.port, Layout::Pairs, page).await?;
    let apart = pass("prefill | decode", &stack, &scenario, options.seed).await;

    let mut table = Table::new([
        "prefill and decode",
        "requests",
        "failed",
        "TTFT p50",
        "p99",
        "longest pause in an answer p50",
        "p99",
    ]);
    table.row(row("on the same engines", &together));
    table.row(row("on different engines", &apart));
    Ok(Played { table, stack })
}

fn row(name: &str, report: &Report) -> Vec<String> {
    vec![
        name.to_owned(),
        report.requests.to_string(),
        report.errors.to_string(),
        ms(report.ttft.p50),
        ms(report.ttft.p99),
        ms(report.pause.p50),
        ms(report.pause.p99),
    ]
}
