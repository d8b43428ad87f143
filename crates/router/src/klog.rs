//! The flags of klog, the original's logger, but for `-v`: accepted without effect, so that the arguments of an existing
//! Deployment stay as they are.

use crate::flags::go_bool;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

const SWITCHES: [&str; 7] = [
    "add_dir_header",
    "alsologtostderr",
    "legacy_stderr_threshold_behavior",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
];

const SETTINGS: [&str; 6] = [
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "stderrthreshold",
    "vmodule",
];

/// Those that were given.
#[derive(Debug)]
pub(crate) struct Klog(Vec<&'static str>);

impl Klog {
    /// What to say of them, if there are any.
    pub(crate) fn remark(&self) -> Option<String> {
        let Self(given) = self;
        let flags: Vec<_> = given.iter().map(|name| format!("--{name}")).collect();
        (!flags.is_empty()).then(|| {
            format!(
                "{} without effect: the log goes to standard error, and -v alone says how much of it",
                flags.join(", ")
            )
        })
    }
}

impl Args for Klog {
    fn augment_args(command: Command) -> Command {
        let flag = |name| Arg::new(name).long(name).hide(true);
        let switch = |name| {
            flag(name)
                .value_parser(go_bool)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
        };
        command.args(SWITCHES.map(switch)).args(SETTINGS.map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Klog {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let all = SWITCHES.into_iter().chain(SETTINGS);
        Ok(Self(all.filter(|name| matches.contains_id(name)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::flags::Cli;
    use clap::{CommandFactory, Parser};

    fn remark(flags: &[&str]) -> Option<String> {
        let arguments = ["kthena-router"].iter().chain(flags);
        let cli = Cli::try_parse_from(arguments).unwrap_or_else(|error| panic!("{error}"));
        cli.serve.klog.remark()
    }

    #[test]
    fn flags_of_klog_are_accepted_and_named_in_one_line() {
        assert_eq!(remark(&[]), None);
        assert_eq!(remark(&["-v=2"]), None);
        let said = remark(&[
            "--logtostderr=true",
            "--alsologtostderr",
            "--stderrthreshold=INFO",
            "--vmodule",
            "a=2,b*=3",
            "--log_dir=",
            "--log_file=/dev/null",
            "--log_file_max_size=1800",
            "--log_backtrace_at=:0",
            "--skip_headers=T",
            "--skip_log_headers=0",
            "--add_dir_header=False",
            "--one_output",
            "--legacy_stderr_threshold_behavior=false",
        ]);
        assert_eq!(
            said.unwrap(),
            "--add_dir_header, --alsologtostderr, --legacy_stderr_threshold_behavior, --logtostderr, \
             --one_output, --skip_headers, --skip_log_headers, --log_backtrace_at, --log_dir, --log_file, \
             --log_file_max_size, --stderrthreshold, --vmodule without effect: the log goes to standard error, and -v alone says how \
             much of it"
        );
        let wrong = Cli::try_parse_from(["kthena-router", "--logtostderr=maybe"]);
        assert!(wrong.is_err());
    }

    #[test]
    fn nobody_is_told_of_them() {
        let help = Cli::command().render_long_help().to_string();
        assert!(
            help.contains("--port") && !help.contains("logtostderr"),
            "{help}"
        );
    }
}
