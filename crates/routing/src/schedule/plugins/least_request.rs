//! least-request: keeps away from pods with a queue, prefers pods with few requests.

use crate::schedule::config::Args;
use crate::schedule::{
    Arg, Ask, FilterPlugin, Plugin, Row, Score, ScorePlugin, Verdict, WarningKind,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "least-request",
    about: "Filter: drops pods whose waiting queue is full. Score: prefers pods with fewer requests in flight",
    args: &[Arg {
        name: MAX_WAITING,
        default: "10",
        about: "Requests waiting in an engine from which on its pod is dropped; negative drops every pod",
    }],
    read: |plugin, value, settings, warnings| {
        let args = Args::new(plugin, value, warnings);
        match args.integer(MAX_WAITING) {
            Ok(limit) => settings.least_request = LeastRequestArgs::new(limit.unwrap_or(0)),
            Err(why) => {
                settings.least_request = LeastRequestArgs::default();
                let text =
                    format!("Unmarshal LeastRequestArgs error, setting default value: {why}");
                warnings.push(WarningKind::BadArguments.with(text));
            }
        }
        Ok(())
    },
    filter: Some(|settings| Box::new(LeastRequest(settings.least_request))),
    score: Some(|settings| Box::new(LeastRequest(settings.least_request))),
};

const MAX_WAITING: &str = "maxWaitingRequests";

/// What a request costs that the engine has not started: a hundred of those it runs. As the original router.
const QUEUED_COST: u64 = 100;

/// Arguments of least-request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRequestArgs {
    /// A pod is kept while its engine has fewer waiting requests than this.
    pub max_waiting: u32,
}

impl Default for LeastRequestArgs {
    fn default() -> Self {
        Self { max_waiting: 10 }
    }
}

impl LeastRequestArgs {
    /// From the value as written: 0 is the default; a negative value keeps no pod, as in the original router.
    fn new(written: i64) -> Self {
        match written {
            0 => Self::default(),
            _ => Self {
                max_waiting: u32::try_from(written.max(0)).unwrap_or(u32::MAX),
            },
        }
    }
}

#[derive(Debug)]
struct LeastRequest(LeastRequestArgs);

impl FilterPlugin for LeastRequest {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    fn keep(&self, _: &Ask<'_>, row: &Row<'_>) -> bool {
        row.gauges
            .is_none_or(|gauges| gauges.waiting < self.0.max_waiting)
    }
}

impl ScorePlugin for LeastRequest {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    /// With `base = in-flight + 100 × max(in-flight − running, 0)`: `(greatest base − base) / greatest base × 100`,
    /// rounded down; all 100 when no pod has a request. An unknown pod counts as one that runs nothing.
    fn score(&self, _: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        let greatest = rows.iter().map(base).max().unwrap_or(0);
        for (row, out) in rows.iter().zip(out) {
            *out = if greatest == 0 {
                Score::MAX
            } else {
                Score::ratio(greatest - base(row), greatest)
            };
        }
        Verdict::Scored
    }
}

fn base(row: &Row<'_>) -> u64 {
    let running = row.gauges.map_or(0, |gauges| gauges.running);
    u64::from(row.in_flight) + QUEUED_COST * u64::from(row.in_flight.saturating_sub(running))
}
