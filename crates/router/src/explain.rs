//! `kthena-router explain`: asks a running router how it would schedule a request, and prints the answer.

use crate::flags::Explain;
use crate::http_client::request;
use crate::table::Table;
use anyhow::{Context, bail};
use http::Method;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read;
use std::process::ExitCode;

/// Lines of the prompt that are shown.
const PROMPT_LINES: usize = 8;

/// Asks and prints.
#[allow(clippy::print_stdout, reason = "the table is the command's output")]
pub(crate) fn run(options: &Explain) -> anyhow::Result<ExitCode> {
    let body = if options.request.as_os_str() == "-" {
        let mut text = Vec::new();
        std::io::stdin()
            .read_to_end(&mut text)
            .context("cannot read standard input")?;
        text
    } else {
        std::fs::read(&options.request)
            .with_context(|| format!("cannot read {}", options.request.display()))?
    };
    let headers = options
        .headers
        .iter()
        .map(|h| header(h))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let url = format!(
        "{}/debug/explain?path={}",
        options.debug_url.trim_end_matches('/'),
        encoded(&options.path)
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (status, answer) = runtime.block_on(request(Method::POST, &url, &headers, body))?;
    let answer: Value =
        serde_json::from_slice(&answer).context("the router's answer is not JSON")?;
    if !status.is_success() {
        bail!(
            "{status}: {}",
            answer["error"]["message"].as_str().unwrap_or("no message")
        );
    }
    print!("{}", render(&answer));
    Ok(ExitCode::SUCCESS)
}

/// A path as the value of a parameter.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '%' => out.push_str("%25"),
            '&' => out.push_str("%26"),
            '+' => out.push_str("%2B"),
            '#' => out.push_str("%23"),
            c => out.push(c),
        }
    }
    out
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = text
        .split_once(':')
        .with_context(|| format!("header {text:?} is not NAME: VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The answer as a person reads it.
fn render(answer: &Value) -> String {
    let mut out = String::new();
    let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    let prompt = &answer["prompt"];
    // Writing to a string does not fail.
    let _ = writeln!(out, "model        {}", text(&answer["model"]));
    let _ = writeln!(out, "modelServer  {}", text(&answer["modelServer"]));
    if let Some(session) = answer["session"].as_object() {
        let _ = writeln!(out, "session      {}", bound(session));
    }
    let _ = writeln!(
        out,
        "prompt       {} bytes, {} blocks hashed",
        prompt["bytes"], prompt["blocks"]
    );
    let shown: Vec<_> = prompt["text"].as_str().unwrap_or("").lines().collect();
    for line in shown.iter().take(PROMPT_LINES) {
        let _ = writeln!(out, "  │ {}", line.chars().take(100).collect::<String>());
    }
    if shown.len() > PROMPT_LINES {
        let _ = writeln!(out, "  │ … {} more lines", shown.len() - PROMPT_LINES);
    }
    // Prefill and decode pods are chosen apart, so each has a table of its own.
    for (role, heading) in [
        (None, "pod"),
        (Some("decode"), "decode pod"),
        (Some("prefill"), "prefill pod"),
    ] {
        if let Some(table) = candidates(answer, role, heading) {
            let _ = write!(out, "\n{table}");
        }
    }
    out.push('\n');
    let attempts: Vec<_> = answer["attempts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|attempt| match attempt.is_object() {
            true => format!(
                "{} → {}",
                text(&attempt["prefill"]),
                text(&attempt["decode"])
            ),
            false => text(attempt),
        })
        .collect();
    let _ = match attempts.is_empty() {
        true => writeln!(out, "no pod would be tried"),
        false => writeln!(out, "would try, in this order: {}", attempts.join(", ")),
    };
    out
}

/// What the session is bound to, in a line.
fn bound(session: &Map<String, Value>) -> String {
    let text = |key: &str| session.get(key).and_then(Value::as_str);
    let mut line = format!("by {}, bound to ", text("source").unwrap_or("-"));
    if let Some(prefill) = text("prefillPod") {
        let _ = write!(line, "{prefill} → ");
    }
    line.push_str(text("pod").unwrap_or("-"));
    if session.get("survives") != Some(&Value::Bool(true)) {
        line.push_str(", which is gone or filtered");
    }
    line
}

/// The table of the candidates of a role, or of those without one.
fn candidates(answer: &Value, role: Option<&str>, heading: &str) -> Option<Table> {
    let rows: Vec<&Value> = answer["candidates"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["role"].as_str() == role)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let plugins: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| row["scores"].as_object())
        .flat_map(|s| s.keys())
        .map(String::as_str)
        .collect();
    let mut table = Table::default();
    let heading = [heading]
        .into_iter()
        .chain(plugins.iter().copied())
        .chain(["matched", "total"]);
    table.row(heading.map(str::to_owned).collect());
    for row in rows {
        let mut cells = vec![row["pod"].as_str().unwrap_or("-").to_owned()];
        match row["filteredBy"].as_str() {
            Some(plugin) => cells.push(format!("filtered by {plugin}")),
            None => {
                cells.extend(plugins.iter().map(|plugin| number(&row["scores"][*plugin])));
                cells.extend([number(&row["matchedBlocks"]), number(&row["total"])]);
            }
        }
        table.row(cells);
    }
    Some(table)
}

fn number(value: &Value) -> String {
    if value.is_null() {
        "-".to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_can_read_it() {
        let answer = serde_json::json!({
            "model": "demo",
            "prompt": {"text": "<|im_start|>user\nhi<|im_end|>\n", "bytes": 30, "blocks": 1, "hashes": ["00"]},
            "modelServer": "default/demo",
            "candidates": [
                {"pod": "default/demo:a", "filteredBy": null, "scores": {"prefix-cache": 100, "gpu-usage": 7},
                 "matchedBlocks": 1, "total": 107},
                {"pod": "default/demo:b", "filteredBy": "least-request", "scores": {}, "matchedBlocks": 0, "total": 0},
            ],
            "attempts": ["default/demo:a"],
        });
        insta::assert_snapshot!(render(&answer));
    }

    #[test]
    fn j2_a_session_has_a_line() {
        let line = |session: &Value| bound(session.as_object().expect("an object"));
        assert_eq!(
            line(&serde_json::json!({"source": "Header", "pod": "default/m:a", "survives": true})),
            "by Header, bound to default/m:a"
        );
        assert_eq!(
            line(&serde_json::json!({
                "source": "Cookie", "pod": "default/m:d", "prefillPod": "default/m:p", "survives": false
            })),
            "by Cookie, bound to default/m:p → default/m:d, which is gone or filtered"
        );
    }

    #[test]
    fn a_path_with_a_query_stays_one_parameter() {
        assert_eq!(
            encoded("/v1/x?a=b%20c+d&e#f"),
            "/v1/x?a=b%2520c%2Bd%26e%23f"
        );
    }

    #[test]
    fn c8_both_passes_have_a_table() {
        let answer = serde_json::json!({
            "model": "m",
            "prompt": {"text": "hi", "bytes": 2, "blocks": 1, "hashes": ["00"]},
            "modelServer": "default/m",
            "candidates": [
                {"pod": "default/m:d0", "role": "decode", "filteredBy": null, "scores": {"prefix-cache": 100},
                 "matchedBlocks": 1, "total": 100},
                {"pod": "default/m:d1", "role": "decode", "filteredBy": null, "scores": {"prefix-cache": 0},
                 "matchedBlocks": 0, "total": 0},
                {"pod": "default/m:p0", "role": "prefill", "filteredBy": "least-request", "scores": {}, "matchedBlocks": 0,
                 "total": 0},
                {"pod": "default/m:p1", "role": "prefill", "filteredBy": null, "scores": {"prefix-cache": 0},
                 "matchedBlocks": 0, "total": 0},
            ],
            "attempts": [
                {"prefill": "default/m:p1", "decode": "default/m:d0"},
                {"prefill": "default/m:p1", "decode": "default/m:d1"},
            ],
        });
        insta::assert_snapshot!(render(&answer));
    }
}
