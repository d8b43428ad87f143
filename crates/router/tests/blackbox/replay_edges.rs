//! `kthena-router replay` with what people really give it: pipes, files of one name, impossible numbers; and README's figures.

use super::replay::{SMALL, replay};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kthena-router");
const LINE: &str =
    "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 5, \"hash_ids\": [0]}\n";

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut program = Command::new(PROGRAM)
        .args(["replay", "--json"])
        .args(SMALL)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut out = BufReader::with_capacity(1, program.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    drop(out);
    let mut err = String::new();
    let mut told = program.stderr.take().unwrap();
    told.read_to_string(&mut err).unwrap();
    let code = program.wait().unwrap().code();
    assert_eq!((first.as_str(), code, err.as_str()), ("{\n", Some(0), ""));
}

#[test]
fn a_trace_may_come_from_a_pipe_and_its_last_line_may_be_cut() {
    let mut program = Command::new(PROGRAM)
        .args(["replay", "--json", "--trace", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = program.stdin.take().unwrap();
    write!(input, "{LINE}{}", &LINE[..30]).unwrap();
    drop(input);
    let output = program.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        err.contains("1 of its lines end in the middle, such as line 2"),
        "{err}"
    );
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["runs"][0]["requests"], 1);
}

#[tokio::test]
async fn a_page_that_cannot_be_written_is_told_before_anything_is_played() {
    let ended = replay(&[&SMALL[..], &["--html", "/nowhere/report.html"]].concat()).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("cannot write /nowhere/report.html"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn causes_are_told_once() {
    let ended = replay(&[&SMALL[..], &["--block-size", "0"]].concat()).await;
    assert_eq!(ended.code, Some(1));
    let says = "the engine's parameters: block_size must be greater than 0";
    assert!(ended.err.trim_end().ends_with(says), "{}", ended.err);
    let ended = replay(&["tune", "--generate", "chat", "--num-gpu-blocks", "0"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("0 KV blocks cannot hold"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn numbers_beyond_memory_are_refused() {
    for (flag, value) in [
        ("--pods", "100000000"),
        ("--pods", "0"),
        ("--replicas", "100000000"),
    ] {
        let ended = replay(&["--generate", "chat", flag, value]).await;
        assert_eq!(ended.code, Some(2), "{flag} {value}");
        assert!(ended.err.contains("must be a whole number from 1 to"));
    }
    let most = usize::MAX.to_string();
    let ended = replay(&["tune", "--generate", "chat", "--candidates", &most]).await;
    assert_eq!(ended.code, Some(2), "{}", ended.err);
}

#[tokio::test]
async fn a_cache_may_be_given_in_tokens_as_the_engine_prints_it() {
    let ended = replay(&[&SMALL[..], &["--kv-tokens", "200000"]].concat()).await;
    let says = "4 pods with 200000 tokens of KV cache each";
    assert!(ended.out.contains(says), "{}{}", ended.out, ended.err);
}

#[tokio::test]
async fn files_of_one_name_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a/x.yaml", "b/x.yaml", "oracle.yaml"].map(|name| dir.path().join(name));
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, e2e::scheduler(&[("prefix-cache", 3)], "{}")).unwrap();
    }
    let paths = paths.map(|path| path.to_str().unwrap().to_owned());
    let args: Vec<&str> = paths.iter().map(String::as_str).collect();
    let args = [&["compare", "--json"][..], &args, &SMALL].concat();
    let value: Value = serde_json::from_str(&replay(&args).await.out).unwrap();
    let names = value["runs"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names[3..], [&paths[0], &paths[1], &paths[2], "oracle"]);
}

#[tokio::test]
async fn a_search_keeps_what_it_does_not_search() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("start.yaml");
    let text = "auth: {issuer: a, jwksUri: 'https://a.example/keys'}\nscheduler:\n  pluginConfig:\n  - name: prefix-cache\n    \
                args: {recordSticky: true, maxBlocksToMatch: 1}\n  plugins:\n    Score:\n      enabled:\n      - {name: least-request, weight: 1}\n";
    std::fs::write(&file, text).unwrap();
    let traffic = [
        "--generate",
        "prefix-repetition",
        "--requests",
        "200",
        "--pods",
        "4",
        "--rate",
        "5",
        "--candidates",
        "3",
        "--objective",
        "uncached",
        "--router-config",
        file.to_str().unwrap(),
    ];
    let ended = replay(&[&["tune", "--json"][..], &traffic].concat()).await;
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    let tuned = &value["tuned"];
    assert_eq!(tuned["held_out_requests"], 60);
    assert_eq!(tuned["start"]["runs"].as_array().unwrap().len(), 3);
    let config = &tuned["scheduler"]["pluginConfig"][0];
    assert_eq!(config["args"]["recordSticky"], true);
    assert_eq!(
        tuned["pays"], true,
        "it does not look at prompts: {value:#}"
    );

    let ended = replay(&[&["tune"][..], &traffic].concat()).await;
    let (_, yaml) = ended.out.split_once("routerConfiguration:\n\n").unwrap();
    for kept in ["jwksUri: https://a.example/keys", "recordSticky: true"] {
        assert!(yaml.contains(kept), "{kept}: {yaml}");
    }
    std::fs::write(&file, yaml).unwrap();
    let args = [&SMALL[..], &["--router-config", file.to_str().unwrap()]].concat();
    let ended = replay(&args).await;
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (Some(0), ""),
        "no warning, no error"
    );
}

/// Rows of README's table: the traffic, how pods are chosen, and what was measured.
fn readme_rows() -> Vec<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| traffic | pods are chosen by |").unwrap();
    let mut traffic = String::new();
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    rows.map(|line| {
        let cells = line.trim_matches('|').split('|');
        let mut cells: Vec<_> = cells
            .map(|cell| cell.trim().trim_matches(['`', '*']).to_owned())
            .collect();
        match cells[0].is_empty() {
            true => cells[0].clone_from(&traffic),
            false => traffic.clone_from(&cells[0]),
        }
        cells
    })
    .collect()
}

#[tokio::test]
async fn readme_shows_what_the_code_prints_of_made_traffic() {
    let rows = readme_rows();
    assert_eq!(rows.len(), 28, "seven kinds of traffic");
    for kind in [
        "shared-prefix",
        "chat",
        "prefix-repetition",
        "siblings",
        "no-sharing",
    ] {
        let args = ["compare", "--generate", kind, "--pods", "8", "--rate", "6"];
        let ended = replay(&args).await;
        let printed = ended.out.lines().skip_while(|line| !line.contains('─'));
        let printed: Vec<Vec<String>> = printed
            .skip(1)
            .filter(|line| !line.is_empty())
            .map(|line| {
                let cells = line.split("  ").map(str::trim);
                let cells: Vec<_> = cells.filter(|cell| !cell.is_empty()).collect();
                // The name; then cached tokens, TTFT mean, p50, p99 and hotspot.
                let shown = [0, 3, 5, 6, 8, 11].map(|column| cells[column]);
                let shown = std::iter::once(kind).chain(shown);
                shown.map(str::to_owned).collect()
            })
            .collect();
        let written: Vec<_> = rows.iter().filter(|row| row[0] == kind).cloned().collect();
        assert_eq!(
            written, printed,
            "write it anew: cargo run -p xtask -- replay-docs target/release/kthena-router"
        );
    }
}
