//! A program that runs to its end.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Longest run. Commands that play traffic for some seconds take a multiple of that on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// What is left of a program that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs a program to its end, without input.
///
/// # Panics
/// When it does not start, or takes longer than three minutes.
pub async fn run(program: impl AsRef<OsStr>, args: &[&str]) -> Ended {
    let running = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LIMIT, running)
        .await
        .expect("the program ends")
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}
