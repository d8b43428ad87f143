//! `kthena-router validate`: every problem with its place, without serving.

use crate::flags::Validate;
use crate::scheduler::check_scheduler;
use control::files;
use std::process::ExitCode;

/// Prints what is wrong; exit code 0 or 1.
#[allow(clippy::print_stdout, reason = "the findings are the command's output")]
pub(crate) fn run(options: &Validate) -> anyhow::Result<ExitCode> {
    let mut findings = match files::load(&options.config_dir) {
        Ok(objects) => objects.warnings,
        Err(problems) => problems,
    };
    if let Some(path) = &options.router_config {
        findings.extend(check_scheduler(path));
    }
    let errors = findings
        .iter()
        .filter(|p| p.refuses(options.strict))
        .count();
    for problem in &findings {
        println!("{}: {problem}", problem.severity.as_str());
    }
    if errors == 0 {
        println!(
            "ok: {} is valid, {} remarks",
            options.config_dir.display(),
            findings.len()
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("not valid: {errors} problems");
    Ok(ExitCode::FAILURE)
}
