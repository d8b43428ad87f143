//! `kthena-router replay` as a person calls it.

use e2e::{Ended, run};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_kthena-router");

pub(crate) async fn replay(args: &[&str]) -> Ended {
    let args: Vec<&str> = std::iter::once("replay")
        .chain(args.iter().copied())
        .collect();
    run(PROGRAM, &args).await
}

/// Small enough for a test.
pub(crate) const SMALL: [&str; 8] = [
    "--generate",
    "chat",
    "--requests",
    "200",
    "--pods",
    "4",
    "--rate",
    "5",
];

#[tokio::test]
async fn compare_prints_a_table_with_the_references() {
    let ended = replay(&[&["compare"][..], &SMALL].concat()).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
}

#[tokio::test]
async fn one_configuration_as_json_and_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("report.html");
    let html = html.to_str().unwrap();
    let ended = replay(&[&SMALL[..], &["--json", "--html", html]].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    let run = &value["runs"][0];
    assert_eq!(
        (&run["name"], &run["requests"]),
        (&"default plugins".into(), &200.into())
    );
    assert_eq!(run["engines"]["prefix_cache_hits"], run["cached_tokens"]);
    let page = std::fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("default plugins"));

    let again = replay(&[&SMALL[..], &["--json"]].concat()).await;
    assert_eq!(again.out, ended.out, "the same seed, the same bytes");
}

#[tokio::test]
async fn files_are_compared_under_their_names_and_mistakes_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let config = e2e::scheduler(&[("prefix-cache", 3)], "{maxBlocksToMatch: 512}");
    std::fs::write(path("far.yaml"), &config).unwrap();
    let ended = replay(&[&["compare", &path("far.yaml"), "--only"][..], &SMALL].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(
        ended
            .out
            .lines()
            .filter(|l| l.starts_with("  far "))
            .count(),
        1,
        "{}",
        ended.out
    );
    assert!(!ended.out.contains("oracle"));

    std::fs::write(
        path("none.yaml"),
        e2e::scheduler(&[("prefix-cache", 0)], "{}"),
    )
    .unwrap();
    let ended = replay(&[&["--router-config", &path("none.yaml")][..], &SMALL].concat()).await;
    assert_eq!(ended.code, Some(1));
    let says = "score plugin \"prefix-cache\" must set a weight greater than 0, got 0";
    assert!(
        ended.err.contains(says) && ended.err.contains("none.yaml"),
        "{}",
        ended.err
    );

    std::fs::write(
        path("trace.jsonl"),
        "{\"at\": 1, \"path\": \"/v1/completions\"}\n",
    )
    .unwrap();
    let ended = replay(&["--trace", &path("trace.jsonl")]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .err
            .contains("trace.jsonl: line 1: a request has a body, or is redacted"),
        "{}",
        ended.err
    );

    let ended = replay(&[&SMALL[..], &["--event", "leave:9@5"]].concat()).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .err
            .contains("something happens to pod 9, but there is no such pod"),
        "{}",
        ended.err
    );
    let ended = replay(&[]).await;
    assert_eq!(ended.code, Some(2), "neither a trace nor a generator");
    assert!(ended.err.contains("--trace"), "{}", ended.err);
}

#[tokio::test]
async fn what_a_search_prints_is_a_configuration() {
    let args = [
        "tune",
        "--candidates",
        "6",
        "--threads",
        "2",
        "--objective",
        "uncached",
    ];
    let traffic = [
        "--generate",
        "chat",
        "--requests",
        "150",
        "--pods",
        "4",
        "--rate",
        "5",
    ];
    let ended = replay(&[&args[..], &traffic].concat()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for part in [
        "start",
        "best",
        "uncached share",
        "took no part in the search",
    ] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let Some((_, yaml)) = ended.out.split_once("routerConfiguration:\n") else {
        assert!(
            ended.out.contains("keep those of the start"),
            "{}",
            ended.out
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("best.yaml");
    std::fs::write(&file, yaml.trim_start()).unwrap();
    let best = replay(&[&["--router-config", file.to_str().unwrap()][..], &traffic].concat()).await;
    assert_eq!(
        (best.code, best.err.as_str()),
        (Some(0), ""),
        "no warning, no error"
    );
}
