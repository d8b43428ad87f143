//! `kthena-router doctor`: reads what a running router tells of itself, and prints what is wrong and what to change.

use crate::flags::Doctor;
use crate::http_client::request;
use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use proxy::doctor::{Answers, Exposition, Facts, Finding, Replica, examine, render, report};
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The router could not be examined.
const UNKNOWN: u8 = 2;

/// Examines and prints.
#[allow(clippy::print_stdout, reason = "the findings are the command's output")]
pub(crate) fn run(options: &Doctor) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let facts = match runtime.block_on(facts(options)) {
        Ok(facts) => facts,
        Err(error) => {
            tracing::error!("{error:#}");
            return Ok(ExitCode::from(UNKNOWN));
        }
    };
    let findings = examine(&facts);
    match options.json {
        true => println!("{}", report(&facts, &findings)),
        false => print!("{}", render(&facts, &findings)),
    }
    Ok(match findings.iter().any(Finding::is_wrong) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

async fn facts(options: &Doctor) -> anyhow::Result<Facts> {
    let mut before = Vec::new();
    if !options.time.is_zero() {
        before = pages(&options.metrics_url).await?;
        tokio::time::sleep(options.time).await;
    }
    let now = pages(&options.metrics_url).await?;
    let mut urls: Vec<_> = options.metrics_url.iter().collect();
    urls.sort();
    urls.dedup();
    if urls.len() < options.metrics_url.len() {
        bail!("--metrics-url names an address twice: one for each replica");
    }
    let mut before = before.into_iter();
    let replicas = options.metrics_url.iter().zip(now);
    let replicas = replicas.map(|(address, now)| Replica {
        address: address.clone(),
        before: before.next(),
        now,
    });
    let page = async |path: &str| json(&options.debug_url, path).await;
    let answers = Answers {
        router: own(page("/debug/router").await?, &options.debug_url)?,
        prefix: page("/debug/prefix-cache").await?,
        decisions: page("/debug/decisions?limit=100000").await?,
        prompts: page("/debug/prompts").await?,
        pods: page("/debug/config_dump/pods").await?,
    };
    let replicas = replicas.collect();
    Facts::new(answers, replicas).context("the debug pages are those of another version")
}

/// Every debug listener has this page, those of older versions, too.
fn own(router: Value, url: &str) -> anyhow::Result<Value> {
    match router.is_null() {
        false => Ok(router),
        true => bail!(
            "{url} is no debug listener of a router (--debug-url); it is on port 15000 of loopback unless set"
        ),
    }
}

async fn pages(urls: &[String]) -> anyhow::Result<Vec<Exposition>> {
    let mut pages = Vec::with_capacity(urls.len());
    for url in urls {
        let url = url.trim_end_matches('/');
        // With or without the page.
        let url = match url.ends_with("/metrics") {
            true => url.to_owned(),
            false => format!("{url}/metrics"),
        };
        let page = Exposition::parse(&String::from_utf8_lossy(&get(&url).await?.1));
        if !page.is_of_a_router() {
            bail!("{url} is no metrics page of a router");
        }
        pages.push(page);
    }
    Ok(pages)
}

/// A debug page, null if a router does not have it: one of another version is examined by what it tells.
async fn json(base: &str, path: &str) -> anyhow::Result<Value> {
    let url = format!("{}{path}", base.trim_end_matches('/'));
    match get(&url).await? {
        (StatusCode::NOT_FOUND, _) => Ok(Value::Null),
        (_, body) => serde_json::from_slice(&body).with_context(|| format!("{url} is not JSON")),
    }
}

async fn get(url: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let asked = request(Method::GET, url, &[], Vec::new());
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    let (status, body) = asked
        .unwrap_or_else(|_| bail!("no answer within {PATIENCE:?}"))
        .with_context(|| {
            format!("cannot read {url}; if the router does not start, its log says why, such as a Score weight of 0")
        })?;
    match status.is_success() || status == StatusCode::NOT_FOUND {
        true => Ok((status, body)),
        false => bail!("{url} answered {status}"),
    }
}
