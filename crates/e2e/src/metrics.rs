//! The router's metrics page.

/// A page in Prometheus' text format.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The page as it came.
    pub page: String,
}

impl Metrics {
    /// The sum over the series of this name that have all these labels; `None` when there is no such series.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let values: Vec<f64> = self
            .series(name)
            .filter(|(has, _)| {
                labels
                    .iter()
                    .all(|(k, v)| has.contains(&format!("{k}=\"{v}\"")))
            })
            .map(|(_, value)| value.parse().expect("a value is a number"))
            .collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// The same, where no series counts as 0.
    #[must_use]
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.value(name, labels).unwrap_or(0.0)
    }

    /// Text between the braces and the value of each series of this name.
    pub fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.page.lines().filter_map(move |line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = match rest.strip_prefix('{') {
                Some(rest) => rest.rsplit_once("} ")?,
                None => ("", rest.strip_prefix(' ')?),
            };
            Some((labels, value))
        })
    }

    /// The value of a histogram's bucket, summed over the series with this text among their labels. Bounds are compared
    /// as numbers: `0`, `0.0` and `0e0` are one.
    #[must_use]
    pub fn bucket(&self, name: &str, labels: &str, le: f64) -> Option<f64> {
        let bound = |labels: &str| {
            let (_, rest) = labels.split_once("le=\"")?;
            rest.split('"').next()?.parse::<f64>().ok()
        };
        self.series(&format!("{name}_bucket"))
            .filter(|(has, _)| has.contains(labels) && bound(has) == Some(le))
            .map(|(_, value)| value.parse::<f64>().expect("a value is a number"))
            .reduce(|sum, value| sum + value)
    }

    /// Names and types of the families with this prefix, in the order of the page; counters without their `_total`,
    /// which only some formats have here.
    #[must_use]
    pub fn families(&self, prefix: &str) -> Vec<String> {
        let types = self.page.lines().filter_map(|l| l.strip_prefix("# TYPE "));
        types
            .filter(|l| l.starts_with(prefix))
            .map(|l| l.replace("_total counter", " counter"))
            .collect()
    }
}
