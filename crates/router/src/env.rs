//! The environment variables, read here and nowhere else.

use crate::flags::go_bool;
use control::go_duration;
use proxy::Settings;
use proxy::access_log::{Format, Output};
use proxy::sticky::Credentials;
use std::time::Duration;

/// What the environment says, defaults filled in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    /// `METRICS_SCRAPE_INTERVAL`, 1s.
    pub(crate) scrape_interval: Duration,
    /// `DRAIN_TIMEOUT`, 5m.
    pub(crate) drain_timeout: Duration,
    /// `MAX_REQUEST_BODY_BYTES`, 32 MiB.
    pub(crate) max_body: usize,
    /// `RESPONSE_HEAD_HOLD`, until the first byte of the body.
    pub(crate) head_hold: Option<Duration>,
    /// `ROUTER_EXPOSE_BACKEND_POD_HEADER`, false.
    pub(crate) shows_pod: bool,
    /// `FAILED_POD_BACKOFF`, 0s.
    pub(crate) failed_pod_backoff: Duration,
    /// `POD_NAMESPACE`: the namespace that the router runs in.
    pub(crate) pod_namespace: Option<String>,
    /// `REDIS_USERNAME`, `REDIS_PASSWORD`: who the router is to the Redis of sessionSticky.
    pub(crate) redis: Credentials,
    /// `ACCESS_LOG_ENABLED`, `ACCESS_LOG_FORMAT`, `ACCESS_LOG_OUTPUT`; `None` when it is off.
    pub(crate) access_log: Option<(Format, Output)>,
}

impl Environment {
    /// Reads the process's environment. A value that makes no sense is named in a warning and its default is used.
    pub(crate) fn read() -> Self {
        let get = |name: &str| std::env::var(name).ok();
        for (name, feature) in ABSENT {
            if get(name).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
                tracing::warn!("{name} has no effect: {feature} is not in this router yet");
            }
        }
        Self::from(get)
    }

    fn from(get: impl Fn(&str) -> Option<String>) -> Self {
        let duration = |name: &str, default| {
            parsed(&get, name, default, |t| {
                go_duration::parse(t).map_err(|e| e.to_string())
            })
        };
        let positive = |name: &str, default: Duration| {
            let value = duration(name, default);
            if value.is_zero() {
                warned(name, "must be greater than zero", default)
            } else {
                value
            }
        };
        Self {
            scrape_interval: positive("METRICS_SCRAPE_INTERVAL", Duration::from_secs(1)),
            drain_timeout: duration("DRAIN_TIMEOUT", Duration::from_secs(300)),
            max_body: parsed(&get, "MAX_REQUEST_BODY_BYTES", 32 << 20, |t| {
                match t.parse::<usize>() {
                    Ok(0) => Err("must be greater than zero".into()),
                    other => other.map_err(|e| e.to_string()),
                }
            }),
            head_hold: parsed(&get, "RESPONSE_HEAD_HOLD", None, |t| {
                go_duration::parse(t).map(Some).map_err(|e| e.to_string())
            }),
            shows_pod: boolean(&get, "ROUTER_EXPOSE_BACKEND_POD_HEADER", false),
            failed_pod_backoff: duration("FAILED_POD_BACKOFF", Duration::ZERO),
            pod_namespace: get("POD_NAMESPACE").filter(|namespace| !namespace.is_empty()),
            redis: Credentials {
                username: get("REDIS_USERNAME").filter(|name| !name.is_empty()),
                password: get("REDIS_PASSWORD").filter(|password| !password.is_empty()),
            },
            access_log: access_log(&get),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            max_body: self.max_body,
            scrape_interval: self.scrape_interval,
            head_hold: self.head_hold,
            shows_pod: self.shows_pod,
            failed_pod_backoff: self.failed_pod_backoff,
            ..Settings::default()
        }
    }
}

/// Switches of the original for what this router has not.
const ABSENT: [(&str, &str); 2] = [
    ("ENABLE_FAIRNESS_SCHEDULING", "fairness scheduling"),
    ("ENABLE_SESSION_BOOST", "session boost"),
];

fn access_log(get: &impl Fn(&str) -> Option<String>) -> Option<(Format, Output)> {
    let enabled = boolean(get, "ACCESS_LOG_ENABLED", true);
    let format = parsed(get, "ACCESS_LOG_FORMAT", Format::Text, |t| match t {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err("must be text or json".into()),
    });
    let output = match get("ACCESS_LOG_OUTPUT").as_deref() {
        None | Some("" | "stdout") => Output::Stdout,
        Some("stderr") => Output::Stderr,
        Some(path) => Output::File(path.into()),
    };
    enabled.then_some((format, output))
}

fn boolean(get: &impl Fn(&str) -> Option<String>, name: &str, default: bool) -> bool {
    parsed(get, name, default, go_bool)
}

fn parsed<T>(
    get: &impl Fn(&str) -> Option<String>,
    name: &str,
    default: T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> T {
    match get(name).as_deref() {
        None | Some("") => default,
        Some(text) => parse(text).unwrap_or_else(|why| warned(name, &why, default)),
    }
}

fn warned<T>(name: &str, why: &str, default: T) -> T {
    tracing::warn!("environment variable {name} is ignored: {why}");
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> Environment {
        Environment::from(|name| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn defaults() {
        let env = with(&[]);
        assert_eq!(env.scrape_interval, Duration::from_secs(1));
        assert_eq!(env.drain_timeout, Duration::from_secs(300));
        assert_eq!(env.max_body, 33_554_432);
        assert_eq!(env.head_hold, None);
        assert_eq!(env.access_log, Some((Format::Text, Output::Stdout)));
    }

    #[test]
    fn values() {
        let env = with(&[
            ("METRICS_SCRAPE_INTERVAL", "200ms"),
            ("DRAIN_TIMEOUT", "0s"),
            ("MAX_REQUEST_BODY_BYTES", "1000"),
            ("RESPONSE_HEAD_HOLD", "0s"),
            ("ROUTER_EXPOSE_BACKEND_POD_HEADER", "true"),
            ("ACCESS_LOG_FORMAT", "json"),
            ("ACCESS_LOG_OUTPUT", "/tmp/x.log"),
        ]);
        assert_eq!(env.scrape_interval, Duration::from_millis(200));
        assert_eq!(env.drain_timeout, Duration::ZERO);
        assert_eq!(env.max_body, 1000);
        assert_eq!(env.head_hold, Some(Duration::ZERO));
        assert!(env.shows_pod && !with(&[]).shows_pod);
        assert_eq!(
            env.access_log,
            Some((Format::Json, Output::File("/tmp/x.log".into())))
        );
        assert_eq!(with(&[("ACCESS_LOG_ENABLED", "false")]).access_log, None);
    }

    #[test]
    fn nonsense_means_the_default() {
        let env = with(&[
            ("METRICS_SCRAPE_INTERVAL", "0s"),
            ("DRAIN_TIMEOUT", "soon"),
            ("MAX_REQUEST_BODY_BYTES", "-1"),
            ("ACCESS_LOG_ENABLED", "maybe"),
            ("ACCESS_LOG_FORMAT", "xml"),
        ]);
        assert_eq!(env, with(&[]));
    }
}
