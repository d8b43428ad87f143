//! `kthena-router validate`: every problem with its place, without serving.

use crate::flags::Validate;
use crate::scheduler::{Checked, check};
use control::files;
use control::resources::claims_without_auth;
use std::process::ExitCode;

/// Prints what is wrong; exit code 0 or 1.
#[allow(clippy::print_stdout, reason = "the findings are the command's output")]
pub(crate) fn run(options: &Validate) -> anyhow::Result<ExitCode> {
    let checked = options.router_config.as_deref().map(check);
    let has_no_auth = checked.as_ref().is_some_and(Checked::has_no_auth);
    let mut findings = match files::load(&options.config_dir) {
        Ok(objects) if has_no_auth => {
            let claims = claims_without_auth(&objects);
            objects.warnings.into_iter().chain(claims).collect()
        }
        Ok(objects) => objects.warnings,
        Err(problems) => problems,
    };
    findings.extend(checked.into_iter().flat_map(|checked| checked.findings));
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
