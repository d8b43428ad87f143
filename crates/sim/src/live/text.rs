//! The Prometheus text format as Python's client writes it.

use std::fmt::Write as _;

use super::histogram::Histogram;

/// Writes the text format the way Python's client does: labels in alphabetical order, a `_created` gauge a family.
pub(super) struct Text {
    out: String,
    labels: Vec<(String, String)>,
    created: f64,
}

impl Text {
    pub(super) fn new(labels: &[(&str, &str)], created: f64) -> Self {
        Self {
            out: String::with_capacity(32 << 10),
            labels: owned(labels),
            created,
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Runs `write` with other labels on every line.
    pub(super) fn with_labels(&mut self, labels: &[(&str, &str)], write: impl FnOnce(&mut Self)) {
        let labels = std::mem::replace(&mut self.labels, owned(labels));
        write(self);
        self.labels = labels;
    }

    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(super) fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let mut all = owned(labels);
        all.extend(self.labels.iter().cloned());
        all.sort();
        let all: Vec<String> = all
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escape(value)))
            .collect();
        let _ = writeln!(self.out, "{name}{{{}}} {}", all.join(","), number(value));
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        self.value(name, &[], value);
    }

    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(&format!("{name}_total"), "counter", help);
        self.value(&format!("{name}_total"), &[], value as f64);
        self.head(&format!("{name}_created"), "gauge", help);
        self.value(&format!("{name}_created"), &[], self.created);
    }

    pub(super) fn counters(&mut self, name: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.head(&format!("{name}_total"), "counter", help);
        for (key, value) in values {
            self.value(&format!("{name}_total"), &[(label, key)], *value as f64);
        }
        self.head(&format!("{name}_created"), "gauge", help);
        for (key, _) in values {
            self.value(&format!("{name}_created"), &[(label, key)], self.created);
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        for (bound, count) in histogram.cumulative() {
            self.value(
                &format!("{name}_bucket"),
                &[("le", &number(bound))],
                count as f64,
            );
        }
        self.value(&format!("{name}_count"), &[], histogram.count() as f64);
        self.value(&format!("{name}_sum"), &[], histogram.sum());
        self.head(&format!("{name}_created"), "gauge", help);
        self.value(&format!("{name}_created"), &[], self.created);
    }
}

fn owned(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    labels
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A number as Python's client writes it: always with a fraction, an exponent from a million on.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return "+Inf".to_owned();
    }
    if value < 1e6 {
        return format!("{value:?}");
    }
    let (mantissa, exponent) = split_exponent(value);
    format!("{mantissa}e+{exponent:02}")
}

fn split_exponent(value: f64) -> (String, i32) {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_written_as_pythons_client_does() {
        let cases = [
            (0.0, "0.0"),
            (28409.0, "28409.0"),
            (0.001, "0.001"),
            (1_795_986_815.25, "1.79598681525e+09"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::INFINITY), "+Inf");
    }
}
