//! A metrics page in Prometheus' text format, as far as the checks need it.

use std::collections::HashMap;

/// The sum over the series of each name. Labels are not kept.
#[derive(Clone, Debug, Default)]
pub struct Exposition(HashMap<String, f64>);

impl Exposition {
    /// Reads a page. Lines that are no samples are skipped, so that a page of another program is an empty one.
    #[must_use]
    pub fn parse(page: &str) -> Self {
        let mut sums = HashMap::new();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            // The value is the last field: the router writes no timestamps. Spaces in label values stand before it.
            let Some((series, value)) = line.trim_end().rsplit_once(' ') else {
                continue;
            };
            let name = series.split_once('{').map_or(series, |(name, _)| name);
            if let Some(value) = value.parse().ok().filter(|v: &f64| v.is_finite()) {
                *sums.entry(name.trim_end().to_owned()).or_insert(0.0) += value;
            }
        }
        Self(sums)
    }

    /// The sum over the series of a name, 0 without one.
    #[must_use]
    pub fn sum(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// Whether it is a page of this router.
    #[must_use]
    pub fn is_of_a_router(&self) -> bool {
        self.0.contains_key("kthena_router_build_info")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_by_name() {
        let page = Exposition::parse(
            "# HELP a x\na{model=\"x } 9\"} 2\na{model=\"y\"} 3.5\nb 1e3\nc NaN\n\nnonsense\n",
        );
        assert_eq!(
            (page.sum("a"), page.sum("b"), page.sum("c")),
            (5.5, 1000.0, 0.0)
        );
        assert!(!page.is_of_a_router());
    }
}
