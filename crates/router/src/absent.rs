//! What the original has and this router has not: accepted while it is off, so that the image can be exchanged in an
//! existing Deployment whose arguments stay as they are. Switched on it stops the start: nothing is silently ignored.

use crate::flags::go_bool;
use anyhow::bail;
use clap::{ArgAction, Args};

/// Flags that can only be off.
#[derive(Debug, Args)]
pub(crate) struct Absent {
    /// Not in this router yet: can only be false.
    #[arg(long, hide = true, value_name = "BOOL", default_value_t = false, value_parser = go_bool, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    enable_gateway_api: bool,
    /// Not in this router yet: can only be false.
    #[arg(long, hide = true, value_name = "BOOL", default_value_t = false, value_parser = go_bool, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    enable_gateway_api_inference_extension: bool,
    /// Not in this router yet: can only be false.
    #[arg(long, hide = true, value_name = "BOOL", default_value_t = false, value_parser = go_bool, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    expose_metrics_on_router_port: bool,
}

impl Absent {
    /// Fails when one is on.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (flag, on) in [
            ("--enable-gateway-api", self.enable_gateway_api),
            (
                "--enable-gateway-api-inference-extension",
                self.enable_gateway_api_inference_extension,
            ),
            (
                "--expose-metrics-on-router-port",
                self.expose_metrics_on_router_port,
            ),
        ] {
            if on {
                bail!("{flag}=true is not possible: this router does not have that feature yet");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::Cli;
    use clap::Parser;

    #[test]
    fn off_is_accepted_and_on_is_named() {
        let check = |flag: &str| {
            let cli = Cli::try_parse_from(["kthena-router", flag]).expect("it is a flag");
            cli.serve.absent.check().map_err(|error| error.to_string())
        };
        for flag in [
            "--enable-gateway-api",
            "--enable-gateway-api-inference-extension",
            "--expose-metrics-on-router-port",
        ] {
            for off in ["false", "False", "FALSE", "f", "F", "0"] {
                assert_eq!(check(&format!("{flag}={off}")), Ok(()));
            }
            for on in [flag.to_owned(), format!("{flag}=True")] {
                let error = check(&on).expect_err("it is on");
                assert!(error.starts_with(&format!("{flag}=true is not")), "{error}");
            }
        }
    }
}
