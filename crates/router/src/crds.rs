//! `kthena-router crds`: the CustomResourceDefinitions as YAML.

use std::io::Write;
use std::process::ExitCode;

/// Prints them.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(control::crd::yaml()?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
