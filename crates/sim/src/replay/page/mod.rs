//! A replay's outcome as one page that needs nothing else: no script, no font, no other address.

mod chart;

use super::Outcome;
use crate::report::Column;
use chart::{Axis, Chart, Mark, Stroke};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
/// Colours that the style has.
const COLOURS: usize = 8;

/// The page. `about` says in a sentence what was replayed.
#[must_use]
pub fn page(about: &str, outcomes: &[Outcome]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Replay</title>\
         <style>\n{STYLE}</style></head><body>\n<h1>Replay</h1>\n<p>{}</p>\n",
        escaped(about)
    );
    html.push_str(&table(outcomes));
    html.push_str("<h2>Time to first token</h2><p>Percentiles; lower is better. The scale is logarithmic.</p>\n");
    html.push_str(&legend(outcomes));
    // Letters of a wide plot could not be read where there is little room.
    for (class, width, height) in [("broad", 1_080.0, 300.0), ("slim", 520.0, 280.0)] {
        let plot = ttft(outcomes, width, height);
        // Writing to a string does not fail.
        let _ = write!(html, "<div class=\"{class}\">{plot}</div>");
    }
    html.push_str("<div class=\"two\"><div><h2>Cached prompt tokens over time</h2><p>Share found in the engines' caches, by time of arrival.</p>\n");
    html.push_str(&hits(outcomes));
    html.push_str("</div><div><h2>Predicted against actual</h2><p>What the router expected in the cache of the pod that it chose, and what was there. On the line both are the same; the area is the number of requests.</p>\n");
    html.push_str(&calibration(outcomes));
    html.push_str("</div></div><h2>Requests on each pod over time</h2><p>Running and waiting, a faint line for each pod, a full one for their mean; all parts have the same scale.</p>\n<div class=\"two\">");
    html.push_str(&loads(outcomes));
    html.push_str("</div>\n</body></html>\n");
    html
}

fn table(outcomes: &[Outcome]) -> String {
    let mut html = String::from(
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Figures\"><table><thead><tr><th scope=\"col\">configuration</th>",
    );
    // Writing to a string does not fail.
    for column in Column::REPLAY {
        let _ = write!(html, "<th scope=\"col\">{}</th>", column.heading());
    }
    html.push_str("</tr></thead><tbody>");
    for outcome in outcomes {
        let _ = write!(html, "<tr><td>{}</td>", escaped(&outcome.name));
        for column in Column::REPLAY {
            let _ = write!(html, "<td>{}</td>", column.cell(&outcome.summary));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn legend(outcomes: &[Outcome]) -> String {
    let key = |(index, outcome): (usize, &Outcome)| {
        format!(
            "<span class=\"key\"><i style=\"background:var(--c{})\"></i>{}</span>",
            index % COLOURS,
            escaped(&outcome.name)
        )
    };
    let keys: String = outcomes.iter().enumerate().map(key).collect();
    format!("<div>{keys}</div>\n")
}

fn ttft(outcomes: &[Outcome], width: f64, height: f64) -> String {
    /// What is below is shown as this, seconds.
    const FLOOR: f64 = 0.001;
    let log = |seconds: &f64| seconds.max(FLOOR).log10();
    let all = outcomes.iter().flat_map(|o| &o.series.ttft).map(log);
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
        (low.min(at), high.max(at))
    });
    if low > high {
        return String::new();
    }
    let mut chart = Chart::new("Time to first token by percentile", width, height)
        .x(Axis::new(0.0, 100.0, "percentile", |p| format!("p{p:.0}")))
        .y(
            Axis::new(low.floor(), high.ceil().max(low.floor() + 1.0), "", |at| {
                seconds(10_f64.powf(at))
            })
            .every(1.0),
        );
    for (index, outcome) in outcomes.iter().enumerate() {
        let points = outcome.series.ttft.iter().enumerate();
        let points = points.map(|(p, at)| Some((p as f64, log(at))));
        chart.line(&outcome.name, Stroke::Full(index % COLOURS), points);
    }
    chart.svg()
}

fn hits(outcomes: &[Outcome]) -> String {
    let end = outcomes.iter().map(|o| o.seconds).fold(0.0, f64::max);
    let all = outcomes
        .iter()
        .flat_map(|o| o.series.cached.iter().flatten());
    let most = all.copied().fold(0.0, f64::max);
    // Up to the next tenth, so that low shares can be told apart.
    let high = ((most * 10.0).ceil() / 10.0).clamp(0.1, 1.0);
    let mut chart = Chart::new("Cached share of prompt tokens over time", 520.0, 280.0)
        .x(Axis::new(0.0, end.max(1.0), "", clock))
        .y(Axis::new(0.0, high, "", share));
    for (index, outcome) in outcomes.iter().enumerate() {
        let series = &outcome.series;
        let points = series.cached.iter().enumerate();
        let points = points.map(|(at, hit)| Some(((at as f64 + 0.5) * series.step, (*hit)?)));
        chart.line(&outcome.name, Stroke::Full(index % COLOURS), points);
    }
    chart.svg()
}

fn calibration(outcomes: &[Outcome]) -> String {
    let mut chart = Chart::new("Predicted against actual cached share", 520.0, 280.0)
        .x(Axis::new(0.0, 1.0, "predicted", share))
        .y(Axis::new(0.0, 1.0, "actual", share));
    chart.line(
        "the same",
        Stroke::Dashed(COLOURS - 1),
        [Some((0.0, 0.0)), Some((1.0, 1.0))].into_iter(),
    );
    for (index, outcome) in outcomes.iter().enumerate() {
        let total = outcome.summary.requests.max(1) as f64;
        for point in &outcome.series.calibration {
            chart.dot(Mark {
                x: point.predicted,
                y: point.actual,
                radius: 3.0 + 12.0 * (point.requests as f64 / total).sqrt(),
                colour: index % COLOURS,
                title: format!(
                    "{}: predicted {}, actual {}, {} requests",
                    outcome.name,
                    share(point.predicted),
                    share(point.actual),
                    point.requests
                ),
            });
        }
    }
    chart.svg()
}

fn loads(outcomes: &[Outcome]) -> String {
    /// Lines of the grid, so that each stands for a whole number of requests.
    const LINES: f64 = 5.0;
    let all = outcomes
        .iter()
        .flat_map(|o| o.series.load.iter().flatten().flatten());
    let most = all.copied().fold(1.0, f64::max);
    let high = (most / LINES).ceil() * LINES;
    let mut html = String::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        let series = &outcome.series;
        // Writing to a string does not fail.
        let _ = write!(html, "<div><h3>{}</h3>", escaped(&outcome.name));
        let title = format!("Requests on each pod, {}", outcome.name);
        let mut chart = Chart::new(&title, 520.0, 220.0)
            .x(Axis::new(0.0, outcome.seconds.max(1.0), "", clock))
            .y(Axis::new(0.0, high, "", |n| format!("{n:.0}")));
        let at = |bucket: usize| (bucket as f64 + 0.5) * series.step;
        for (pod, load) in series.load.iter().enumerate() {
            let points = load.iter().enumerate();
            let points = points.map(|(bucket, n)| Some((at(bucket), (*n)?)));
            chart.line(
                &format!("pod {pod}"),
                Stroke::Faint(index % COLOURS),
                points,
            );
        }
        let buckets = series.load.iter().map(Vec::len).max().unwrap_or(0);
        let mean = (0..buckets).map(|bucket| {
            let pods = series.load.iter().filter_map(|load| *load.get(bucket)?);
            let (sum, count) = pods.fold((0.0, 0.0), |(sum, n), load| (sum + load, n + 1.0));
            (count > 0.0).then(|| (at(bucket), sum / count))
        });
        chart.line("mean", Stroke::Full(index % COLOURS), mean);
        html.push_str(&chart.svg());
        html.push_str("</div>");
    }
    html
}

fn share(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn seconds(seconds: f64) -> String {
    match seconds < 1.0 {
        true => format!("{:.0} ms", seconds * 1000.0),
        false => format!("{seconds:.0} s"),
    }
}

fn clock(at: f64) -> String {
    match at < 600.0 {
        true => format!("{at:.0} s"),
        false => format!("{:.0} min", at / 60.0),
    }
}

/// Text as text: names are file names, which may hold anything.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}
