//! The command line.

use crate::absent::Absent;
use crate::klog::Klog;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use proxy::recording::Recording;
use proxy::{DecisionHeader, Settings};
use std::path::PathBuf;
use std::time::Duration;

/// Routes OpenAI requests to the pod that recently served their prompt prefix.
///
/// Without a command it serves.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    args_conflicts_with_subcommands = true,
    max_term_width = 110
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check manifests and configuration without serving.
    Validate(Validate),
    /// Show how a running router would schedule a request, without sending it.
    Explain(Explain),
    /// Examine a running router: what is wrong, and what to change. Exit code 0: nothing wrong, 1: something, 2: no answer.
    Doctor(Doctor),
    /// Run a simulated inference engine.
    SimEngine(SimEngine),
    /// Print the CustomResourceDefinitions, ready for `kubectl apply -f -`.
    Crds,
    /// Play chat traffic against four simulated engines, once without what the router is for and once with it.
    Demo(Demo),
    /// Play a trace in virtual time: what would which settings have done?
    Replay(Box<crate::replay::Flags>),
}

/// Where resources come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigSource {
    /// Manifests in a directory.
    File,
    /// A cluster's API server.
    Kubernetes,
}

/// Flags of the router itself.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Port for inference requests.
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Port for metrics.
    #[arg(long, default_value_t = 9090)]
    pub(crate) metrics_port: u16,
    /// Port for the debug pages, on loopback only.
    #[arg(long, default_value_t = 15000)]
    pub(crate) debug_port: u16,
    /// Where ModelServers and ModelRoutes come from.
    #[arg(long, value_enum, default_value_t = ConfigSource::Kubernetes)]
    pub(crate) config_source: ConfigSource,
    /// Directory of manifests (.yaml, .yml, .json) for --config-source=file.
    #[arg(long, default_value = "/etc/kthena/resources")]
    pub(crate) config_dir: PathBuf,
    /// How often the directory, and the files of --tls-cert and --tls-key, are looked at.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(crate) config_sync_period: Duration,
    /// The only namespace to look at with --config-source=kubernetes; all of them unless set.
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// Whether the status of resources is written with --config-source=kubernetes.
    #[arg(long, default_value_t = true, value_parser = go_bool, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) status: bool,
    /// Requests to the API server in a second on average; 20 if 0.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) kube_api_qps: f64,
    /// Requests to the API server at once at most; twice those in a second if 0.
    #[arg(long, default_value_t = 0)]
    pub(crate) kube_api_burst: u64,
    /// The routerConfiguration file. Read at the start only.
    #[arg(long, default_value = DEFAULT_ROUTER_CONFIG)]
    pub(crate) router_config: PathBuf,
    /// Certificate chain in PEM for the inference port, which then speaks TLS only. Read again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key in PEM of --tls-cert.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) insight: InsightFlags,
    #[command(flatten)]
    pub(crate) webhook: WebhookFlags,
    /// Verbosity of the log: 0 to 2 usual, 4 and above each plugin's scores for each request.
    #[arg(short = 'v', long = "v", default_value_t = 0, value_name = "N")]
    pub(crate) verbosity: u8,
    #[command(flatten)]
    pub(crate) absent: Absent,
    #[command(flatten)]
    pub(crate) klog: Klog,
}

/// What the router tells of its decisions.
#[derive(Clone, Debug, Args)]
pub(crate) struct InsightFlags {
    /// Which responses tell why their pod was chosen, in `x-kthena-decision`; on-request: those to requests with
    /// `x-kthena-explain: 1`.
    #[arg(long, value_enum, default_value_t = DecisionHeaderFlag::Never, value_name = "WHEN")]
    pub(crate) decision_header: DecisionHeaderFlag,
    /// Show the first 80 characters of shared prompts at /debug/prefix-cache.
    #[arg(long, default_value_t = false, value_parser = go_bool, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) debug_show_prompts: bool,
    /// Append every request that was served to this file, a JSON line each, with its body; for replaying them.
    #[arg(long, value_name = "FILE")]
    pub(crate) record_requests: Option<PathBuf>,
    /// Record lengths and keyed hashes in place of bodies.
    #[arg(long, default_value_t = false, value_parser = go_bool, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL", requires = "record_requests")]
    pub(crate) record_redact: bool,
    /// Greatest length of the recording in bytes; recording stops there.
    #[arg(long, default_value_t = 1 << 30, value_name = "BYTES")]
    pub(crate) record_max_bytes: u64,
}

/// Which responses carry `x-kthena-decision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecisionHeaderFlag {
    /// None.
    Never,
    /// Those to requests that ask for it.
    OnRequest,
    /// All of requests that were scheduled.
    Always,
}

impl InsightFlags {
    /// The recording that is asked for.
    pub(crate) fn recording(&self) -> Option<Recording> {
        let file = self.record_requests.clone()?;
        Some(Recording {
            file,
            redacts: self.record_redact,
            max_bytes: self.record_max_bytes,
        })
    }

    /// Puts the flags into the settings.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.shows_prompts = self.debug_show_prompts;
        settings.decision_header = match self.decision_header {
            DecisionHeaderFlag::Never => DecisionHeader::Never,
            DecisionHeaderFlag::OnRequest => DecisionHeader::OnRequest,
            DecisionHeaderFlag::Always => DecisionHeader::Always,
        };
    }
}

/// Flags of the admission webhook, which is served with --config-source=kubernetes only.
#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookFlags {
    /// Serve the admission webhook. `--enable-webhook=false` turns it off.
    #[arg(long, default_value_t = true, value_parser = go_bool, action = ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) enable_webhook: bool,
    /// Port for the admission webhook, HTTPS.
    #[arg(long, default_value_t = 8443)]
    pub(crate) webhook_port: u16,
    /// Certificate chain in PEM for the webhook, used if the Secret does not exist.
    #[arg(long, default_value = "/etc/tls/tls.crt", value_name = "FILE")]
    pub(crate) webhook_tls_cert_file: PathBuf,
    /// Private key in PEM of --webhook-tls-cert-file.
    #[arg(long, default_value = "/etc/tls/tls.key", value_name = "FILE")]
    pub(crate) webhook_tls_private_key_file: PathBuf,
    /// Secret of the webhook's certificate; made if neither it nor the files exist.
    #[arg(
        long,
        default_value = "kthena-router-webhook-certs",
        value_name = "NAME"
    )]
    pub(crate) cert_secret_name: String,
    /// Service by which the API server reaches the webhook: the name in a certificate that is made.
    #[arg(long, default_value = "kthena-router-webhook", value_name = "NAME")]
    pub(crate) webhook_service_name: String,
}

/// Where the chart mounts the configuration.
pub(crate) const DEFAULT_ROUTER_CONFIG: &str = "/etc/config/routerConfiguration.yaml";

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Directory of manifests.
    #[arg(long)]
    pub(crate) config_dir: PathBuf,
    /// The routerConfiguration file.
    #[arg(long)]
    pub(crate) router_config: Option<PathBuf>,
    /// Treat warnings, such as unknown fields and misspelled plugin arguments, as errors.
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Address of the router's debug listener.
    #[arg(long, default_value = "http://127.0.0.1:15000")]
    pub(crate) debug_url: String,
    /// Path that the request would be sent to.
    #[arg(long, default_value = "/v1/chat/completions")]
    pub(crate) path: String,
    /// Header that the request would carry, as `name: value`. May be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// File with the request's body; `-` reads standard input.
    pub(crate) request: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Address of the router's metrics listener. Given again for each further replica.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    pub(crate) metrics_url: Vec<String>,
    /// Address of the (first) router's debug listener.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:15000")]
    pub(crate) debug_url: String,
    /// Time between two readings of the metrics, for what grows; 0s reads once.
    #[arg(long = "for", default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub(crate) time: Duration,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimEngine {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: std::net::IpAddr,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Name the model is served under. May be repeated.
    #[arg(long = "served-model-name", default_value = "sim")]
    pub(crate) names: Vec<String>,
    /// Whose metric names are shown: vllm or sglang.
    #[arg(long, default_value = "vllm")]
    pub(crate) engine: sim::live::EngineKind,
    /// Do prefill or decode only: prefill or decode.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<sim::live::PdRole>,
    /// How the KV cache goes from prefill to decode: http, nixl or sglang; where not given, nixl for vllm and sglang for sglang.
    #[arg(long, value_name = "CONNECTOR", requires = "role")]
    pub(crate) kv_connector: Option<sim::live::PdConnector>,
    /// Port at which an SGLang prefill engine waits for decode engines.
    #[arg(long, default_value_t = 8998, value_name = "PORT")]
    pub(crate) disaggregation_bootstrap_port: u16,
    /// Seed of answers.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Engine seconds per real second.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) time_scale: f64,
    #[command(flatten)]
    pub(crate) params: SimParams,
}

/// Sizes and speeds of a simulated engine; what is not given comes from the preset of a 7B model on one datacentre GPU.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SimParams {
    /// Tokens of a KV block.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) block_size: Option<usize>,
    /// Blocks of the KV pool.
    #[arg(long, value_name = "BLOCKS")]
    pub(crate) num_gpu_blocks: Option<usize>,
    /// Sequences that run at once, at most.
    #[arg(long, value_name = "N")]
    pub(crate) max_num_seqs: Option<usize>,
    /// Tokens of a prompt and its answer, at most.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_model_len: Option<usize>,
    /// Tokens that one step computes, at most.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_num_batched_tokens: Option<usize>,
    /// Requests that may wait; more are refused with 503.
    #[arg(long, value_name = "N")]
    pub(crate) max_num_queued_reqs: Option<usize>,
    /// Fixed time of a step, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) step_overhead: Option<f64>,
    /// Time to read the weights once, in seconds: the least time of a step.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) weight_read: Option<f64>,
    /// Compute time of a token, in seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) compute_per_token: Option<f64>,
}

/// What the demo shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Pods chosen at random, then by the prompt's prefix.
    Prefix,
    /// Prefill and decode on the same pods, then on different ones.
    Pd,
    /// Pods chosen at random for each request, then for the first request of a session only.
    Sticky,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// What is shown.
    #[arg(long, value_enum, default_value_t = Scenario::Prefix)]
    pub(crate) scenario: Scenario,
    /// Time of traffic, both passes together.
    #[arg(long = "for", default_value = "20s", value_parser = duration, value_name = "TIME")]
    pub(crate) time: Duration,
    /// End after the table instead of serving on.
    #[arg(long)]
    pub(crate) exit: bool,
    /// Port of the router; a free one where not given.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Seed of the traffic.
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
}

/// The spellings that Go's strconv.ParseBool knows.
pub(crate) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".into()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    control::go_duration::parse(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn verbosity_in_every_spelling_of_go() {
        for spelling in [
            &["-v", "4"][..],
            &["-v=4"],
            &["--v=4"],
            &["-v4"],
            &["--v", "4"],
        ] {
            let args = ["kthena-router"].iter().chain(spelling);
            assert_eq!(Cli::parse_from(args).serve.verbosity, 4, "{spelling:?}");
        }
    }

    #[test]
    fn statuses_are_on_until_they_are_turned_off() {
        let status = |args: &[&str]| {
            let args = ["kthena-router"].iter().chain(args);
            Cli::parse_from(args).serve.status
        };
        assert!(status(&[]) && status(&["--status"]) && status(&["--status=true"]));
        assert!(!status(&["--status=false"]));
    }

    #[test]
    fn a_switch_in_every_spelling_of_go() {
        for (spelling, on) in [
            ("--enable-webhook", true),
            ("--enable-webhook=true", true),
            ("--enable-webhook=T", true),
            ("--enable-webhook=false", false),
            ("--enable-webhook=0", false),
        ] {
            let serve = Cli::parse_from(["kthena-router", spelling]).serve;
            assert_eq!(serve.webhook.enable_webhook, on, "{spelling}");
        }
        let all = |value: &str| {
            let file = ["kthena-router", "--record-requests=f"].map(str::to_owned);
            let flags = [
                "status",
                "enable-webhook",
                "debug-show-prompts",
                "record-redact",
            ];
            let flags = flags.map(|flag| format!("--{flag}{value}"));
            let serve = Cli::parse_from(file.into_iter().chain(flags)).serve;
            let insight = serve.insight;
            [
                serve.status,
                serve.webhook.enable_webhook,
                insight.debug_show_prompts,
                insight.record_redact,
            ]
        };
        for on in ["", "=1", "=t", "=T", "=true", "=TRUE", "=True"] {
            assert_eq!(all(on), [true; 4], "{on}");
        }
        for off in ["=0", "=f", "=F", "=false", "=FALSE", "=False"] {
            assert_eq!(all(off), [false; 4], "{off}");
        }
        let wrong = Cli::try_parse_from(["kthena-router", "--enable-webhook=maybe"]);
        assert!(wrong.is_err());
    }

    #[test]
    fn defaults_are_those_of_the_original() {
        let serve = Cli::parse_from(["kthena-router"]).serve;
        let webhook = &serve.webhook;
        assert!(webhook.enable_webhook);
        assert_eq!(webhook.webhook_port, 8443);
        assert_eq!(
            (
                &webhook.webhook_tls_cert_file,
                &webhook.webhook_tls_private_key_file
            ),
            (
                &PathBuf::from("/etc/tls/tls.crt"),
                &PathBuf::from("/etc/tls/tls.key")
            )
        );
        assert_eq!(webhook.cert_secret_name, "kthena-router-webhook-certs");
        assert_eq!(webhook.webhook_service_name, "kthena-router-webhook");
        assert_eq!((&serve.tls_cert, &serve.tls_key), (&None, &None));
        assert_eq!(
            (serve.port, serve.metrics_port, serve.debug_port),
            (8080, 9090, 15000)
        );
        assert_eq!(serve.config_sync_period, Duration::from_secs(10));
        assert_eq!(
            serve.router_config,
            PathBuf::from("/etc/config/routerConfiguration.yaml")
        );
    }
}
