//! What is simulated around the routers: engines, and what happens to them.

use crate::model::EngineParams;
use std::str::FromStr;

/// Engines, routers, and what happens in the course of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Pods at the start, numbered from 0.
    pub pods: usize,
    /// What each pod runs.
    pub engine: EngineParams,
    /// Routers behind a balancer that gives them requests in turn; each knows only what it routed itself.
    pub replicas: usize,
    /// Seconds between two readings of each engine's metrics.
    pub scrape_interval: f64,
    /// In any order.
    pub happenings: Vec<Happening>,
    /// Of everything that is drawn.
    pub seed: u64,
}

impl Default for Setup {
    /// Eight pods with a long context, one router, nothing happens.
    fn default() -> Self {
        Self {
            pods: 8,
            engine: EngineParams::datacentre_8b_long(),
            replicas: 1,
            scrape_interval: 1.0,
            happenings: Vec::new(),
            seed: 0,
        }
    }
}

/// Something that happens to a pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happening {
    /// Seconds since the first request.
    pub at: f64,
    /// What.
    pub what: What,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The engine of this pod crashes with all its requests and is back, with an empty cache, after so many seconds. Routers do
    /// not know: until then its connections are refused.
    Restart {
        /// The pod's number.
        pod: usize,
        /// Seconds.
        away: f64,
    },
    /// The pod leaves: it gets no more requests, and ends those that it has.
    Leave {
        /// The pod's number.
        pod: usize,
    },
    /// A new pod joins, with the next number.
    Join,
}

/// How long an engine is away where it is not said: loading a small model anew, seconds.
const USUAL_RESTART: f64 = 60.0;

/// Reads `restart:POD@TIME`, `restart:POD@TIME+AWAY`, `leave:POD@TIME` or `join@TIME`; times are seconds, or have a unit `s`, `m` or `h`.
impl FromStr for Happening {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "{text:?} must be restart:POD@TIME[+AWAY], leave:POD@TIME or join@TIME, such as restart:3@10m+30s"
            )
        };
        let (what, at) = text.split_once('@').ok_or_else(form)?;
        let (at, away) = match at.split_once('+') {
            Some((at, away)) => (at, Some(seconds(away).ok_or_else(form)?)),
            None => (at, None),
        };
        let at = seconds(at).ok_or_else(form)?;
        let what = match (what.split_once(':'), away) {
            (Some(("restart", pod)), away) => What::Restart {
                pod: pod.parse().map_err(|_| form())?,
                away: away.unwrap_or(USUAL_RESTART),
            },
            (Some(("leave", pod)), None) => What::Leave {
                pod: pod.parse().map_err(|_| form())?,
            },
            (None, None) if what == "join" => What::Join,
            _ => return Err(form()),
        };
        Ok(Self { at, what })
    }
}

/// A time in seconds; `None` if it is no time.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3_600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok()? * unit;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn happenings_are_read() {
        let read = |text: &str| text.parse::<Happening>().map(|h| (h.at, h.what));
        assert_eq!(
            read("restart:3@10m+30s"),
            Ok((600.0, What::Restart { pod: 3, away: 30.0 }))
        );
        assert_eq!(
            read("restart:0@5"),
            Ok((5.0, What::Restart { pod: 0, away: 60.0 }))
        );
        assert_eq!(read("leave:2@1h"), Ok((3_600.0, What::Leave { pod: 2 })));
        assert_eq!(read("join@1.5s"), Ok((1.5, What::Join)));
        for wrong in [
            "join",
            "join:1@5",
            "leave:2@5+3",
            "leave:x@5",
            "restart@5",
            "join@-1",
            "stop:1@5",
            "join@ä",
        ] {
            assert!(
                read(wrong).unwrap_err().contains("restart:POD@TIME"),
                "{wrong}"
            );
        }
    }
}
