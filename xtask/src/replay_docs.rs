//! What README.md and the guide show of `kthena-router replay`, written anew from what the program prints.
//!
//! The rows of made traffic are also held by a test of the router. Those of the Mooncake traces need the traces, which are
//! not part of this repository.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const README: &str = "README.md";
const GUIDE: &str = "docs/guide/tune.md";
/// The first line of README's table.
const HEADING: &str = "| traffic | pods are chosen by |";
/// Columns of the program's table that README shows: cached tokens, TTFT mean, p50, p99, hotspot.
const SHOWN: [usize; 5] = [3, 5, 6, 8, 11];
/// How the guide's example begins.
const EXAMPLE: &str = "$ kthena-router replay tune ";
/// The trace's name in the table and its file, as in Mooncake's repository.
const TRACES: [(&str, &str); 2] = [
    ("Mooncake conversation", "mooncake_conversation_trace.jsonl"),
    ("Mooncake synthetic", "mooncake_synthetic_trace.jsonl"),
];
const MADE: [&str; 5] = [
    "shared-prefix",
    "chat",
    "prefix-repetition",
    "siblings",
    "no-sharing",
];

/// Runs `PROGRAM`, writes its figures into the documents. With `--traces DIR` those of the traces, too.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> Result<()> {
    let usage = "usage: cargo run -p xtask -- replay-docs PROGRAM [--traces DIR]";
    let program = PathBuf::from(args.next().ok_or(usage)?);
    let traces = match (args.next().as_deref(), args.next()) {
        (None, _) => None,
        (Some("--traces"), Some(dir)) => Some(PathBuf::from(dir)),
        _ => return Err(usage.into()),
    };
    let mut readme = fs::read_to_string(README)?;
    for (name, file) in TRACES {
        if let Some(dir) = &traces {
            let path = dir.join(file);
            let path = path.to_str().ok_or("a path that is no text")?;
            let table = printed(&program, &["compare", "--trace", path, "--pods", "16"])?;
            readme = with_rows(&readme, name, &table)?;
        }
    }
    for kind in MADE {
        let args = ["compare", "--generate", kind, "--pods", "8", "--rate", "6"];
        readme = with_rows(&readme, &format!("`{kind}`"), &printed(&program, &args)?)?;
    }
    fs::write(README, readme)?;
    let guide = fs::read_to_string(GUIDE)?;
    fs::write(GUIDE, with_example(&guide, &program)?)?;
    Ok(())
}

fn printed(program: &Path, args: &[&str]) -> Result<String> {
    println!("replay {}", args.join(" "));
    let output = Command::new(program).arg("replay").args(args).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// README with the rows of one kind of traffic as in the program's table.
fn with_rows(readme: &str, traffic: &str, table: &str) -> Result<String> {
    let rows = table.lines().skip_while(|line| !line.contains('─')).skip(1);
    let rows = rows.filter(|line| !line.trim().is_empty());
    let mut written = String::new();
    for (index, row) in rows.enumerate() {
        let cells: Vec<_> = row.split("  ").map(str::trim).collect();
        let cells: Vec<_> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let name = cells.first().ok_or("a row without a name")?;
        let first = if index == 0 { traffic } else { "" };
        let name = match *name {
            "default plugins" => "**default plugins**",
            other => other,
        };
        written += &format!("| {first} | {name} |");
        for column in SHOWN {
            let cell = cells.get(column).ok_or("a row without its figures")?;
            written += &format!(" {cell} |");
        }
        written += "\n";
    }
    let table = readme.find(HEADING).ok_or("README has no such table")?;
    let start = table
        + readme[table..]
            .find(&format!("\n| {traffic} |"))
            .ok_or_else(|| format!("README has no row {traffic}"))?
        + 1;
    let rest: String = readme[start..]
        .split_inclusive('\n')
        .skip(written.lines().count())
        .collect();
    Ok(format!("{}{written}{rest}", &readme[..start]))
}

/// The guide with what the command of its example prints, up to the configuration.
fn with_example(guide: &str, program: &Path) -> Result<String> {
    let start = guide.find(EXAMPLE).ok_or("the guide has no example")?;
    let (command, _) = guide[start..].split_once('\n').ok_or("it ends there")?;
    let end = start + guide[start..].find("```").ok_or("the example has no end")?;
    let args: Vec<_> = command.split(' ').skip(3).collect();
    let text = printed(program, &args)?;
    let shown = match text.split_once("routerConfiguration:\n") {
        Some((before, _)) => format!("{before}routerConfiguration:\n…\n"),
        None => text,
    };
    Ok(format!(
        "{}{command}\n{shown}{}",
        &guide[..start],
        &guide[end..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_replaced_and_nothing_else() {
        let readme = "a\n| traffic | pods are chosen by | x |\n|---|\n| `chat` | random | 1 |\n|  | oracle | 1 |\n| `x` | random | 1 |\n\nb\n";
        let table = "chat: 2000 requests\n\n      requests …\n  ───\n  random   2000   0   57.4 %   –   98 ms   90 ms   189 ms   278 ms   2 s   7 ms   1.08   –   –\n\
                     \x20 oracle   2000   0   92.9 %   92.9 %   22 ms   20 ms   29 ms   109 ms   2 s   4 ms   2.16   –   –\n\n";
        assert_eq!(
            with_rows(readme, "`chat`", table).unwrap(),
            "a\n| traffic | pods are chosen by | x |\n|---|\n| `chat` | random | 57.4 % | 98 ms | 90 ms | 278 ms | 1.08 |\n\
             |  | oracle | 92.9 % | 22 ms | 20 ms | 109 ms | 2.16 |\n| `x` | random | 1 |\n\nb\n"
        );
        assert!(with_rows(readme, "`unknown`", table).is_err());
    }
}
