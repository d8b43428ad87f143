//! `--scenario sticky`: chats whose turns go anywhere, and chats that stay on their pod.

use super::page::Page;
use super::stack::{Layout, Stack};
use super::{ENGINES, MODEL, PATIENCE, Played, ms, pass, random, scaled};
use crate::flags::Demo;
use crate::table::Table;
use sim::load::{Report, Scenario};

/// Plays the same chats twice with pods chosen at random: for each request, and for the first of each session.
#[allow(clippy::print_stdout, reason = "says what the demo does")]
pub(super) async fn play_both(options: &Demo, page: &mut Page) -> anyhow::Result<Played> {
    let scenario = scaled(Scenario::demo(MODEL), options.time);
    println!(
        "{ENGINES} simulated engines (a 7B model on one GPU each), {} chats of {} turns, each named by its X-Session-ID.\n\
         The same traffic twice, on fresh engines:\n",
        scenario.users, scenario.turns,
    );
    let stack = Stack::start(random()?, None, Layout::Alike, page).await?;
    let anywhere = pass("random", &stack, &scenario, options.seed).await;
    stack.stop(PATIENCE).await;

    let stack = Stack::start(random()?, options.port, Layout::Sessions, page).await?;
    let sticky = pass("session sticky", &stack, &scenario, options.seed).await;

    let mut table = Table::new([
        "pods are chosen",
        "requests",
        "failed",
        "pods a chat",
        "cached tokens",
        "TTFT mean",
        "p50",
        "p99",
    ]);
    table.row(row("at random", &anywhere));
    table.row(row("at random, once a session", &sticky));
    Ok(Played { table, stack })
}

fn row(name: &str, report: &Report) -> Vec<String> {
    vec![
        name.to_owned(),
        report.requests.to_string(),
        report.errors.to_string(),
        format!("{:.1}", report.pods_per_chat),
        format!("{:.1} %", report.cached_percent()),
        ms(report.ttft.mean),
        ms(report.ttft.p50),
        ms(report.ttft.p99),
    ]
}
