//! The log on standard error, in the line format of klog, which existing log pipelines parse:
//! `I1129 22:39:12.123456     1 scheduler.rs:88] message`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::{self, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging. Verbosity as klog's: 4 shows every plugin's scores.
pub(crate) fn init(verbosity: u8) {
    let level = match verbosity {
        0..=1 => LevelFilter::INFO,
        2..=3 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Other crates' inner workings are of no use to an operator, whatever the verbosity.
    let ours = tracing_subscriber::filter::Targets::new()
        .with_default(LevelFilter::WARN)
        // Failures reach the cluster source, which logs each once; in here they would be lines without end, some with
        // whole answers of the API server.
        .with_targets(["kube_client", "kube_runtime"].map(|target| (target, LevelFilter::OFF)))
        .with_targets(
            ["kthena_router", "proxy", "control", "sim", "routing"].map(|target| (target, level)),
        );
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Klog)
        .with_writer(std::io::stderr);
    // A second call, as in tests, changes nothing.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(ours)
        .try_init();
}

struct Klog;

impl<S, N> FormatEvent<S, N> for Klog
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let meta = event.metadata();
        let mut text = Text::default();
        event.record(&mut text);
        let prefix = prefix(
            *meta.level(),
            meta.file().unwrap_or("?"),
            meta.line().unwrap_or(0),
        );
        // A message of several lines, such as a table of scores, is written in one go, each line with its prefix.
        for line in text.message.lines() {
            writeln!(out, "{prefix}{line}{}", text.fields)?;
        }
        Ok(())
    }
}

fn prefix(level: Level, file: &str, line: u32) -> String {
    let letter = match level {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
    format!(
        "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {file}:{line}] ",
        now.month(),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        now.subsec_nanosecond() / 1000,
        std::process::id(),
    )
}

#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
