//! Instructions per operation, counted by callgrind: the same on a busy machine as on an idle one, so a change of one
//! per cent shows. What it does not show is time lost on memory and branches; `cargo bench` does.
//!
//! The examples `icount_CRATE` do their operation a given number of times; the difference of two runs
//! is free of what they do before.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use xtask::tree;

/// Times that the operation is done in the shorter run and in the longer one.
const TIMES: [u64; 2] = [64, 576];

/// Crates whose example knows these operations.
const OPERATIONS: [(&str, &[&str]); 2] = [
    (
        "prefix-index",
        &["hash", "look-up", "hash+look-up", "record"],
    ),
    (
        "routing",
        &["extract", "extract+hash", "plan-4", "plan-100"],
    ),
];

/// Builds the examples and prints one line per operation.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    for (package, operations) in OPERATIONS {
        let example = format!("icount_{}", package.replace('-', "_"));
        let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args([
                "build",
                "--quiet",
                "--release",
                "--package",
                package,
                "--example",
                &example,
            ])
            .current_dir(tree::root())
            .status()?;
        if !built.success() {
            return Err(format!("{example} was not built").into());
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| tree::root().join("target"), Into::into);
        let program = target.join("release/examples").join(&example);
        for operation in operations {
            let few = instructions(&program, operation, TIMES[0])?;
            let many = instructions(&program, operation, TIMES[1])?;
            println!(
                "{package:<13} {operation:<13} {:>9}",
                (many - few) / (TIMES[1] - TIMES[0])
            );
        }
    }
    Ok(())
}

fn instructions(program: &Path, operation: &str, times: u64) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([operation, &times.to_string()])
        .output()
        .map_err(|why| format!("valgrind: {why} (Debian: valgrind)"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    match collected {
        Some((_, count)) if output.status.success() => Ok(count.trim().parse()?),
        _ => Err(format!("{} {operation}: {said}", program.display()).into()),
    }
}
