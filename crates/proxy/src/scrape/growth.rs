//! What a counter of an engine has grown by since the router first read it.

/// Follows one counter. An engine that restarts begins at 0 again; what it had counted before stays counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    before: Option<f64>,
    total: f64,
}

impl Growth {
    /// Takes the value of a page; returns the growth since the first one.
    pub(super) fn update(&mut self, value: f64) -> u64 {
        let before = self.before.replace(value).unwrap_or(value);
        self.total += if value < before {
            value
        } else {
            value - before
        };
        // Counters are whole and not negative.
        self.total as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_loses_nothing() {
        let mut growth = Growth::default();
        let pages = [1000.0, 1000.0, 1016.0, 32.0, 48.0, 0.0, 5.0];
        let read = pages.map(|value| growth.update(value));
        assert_eq!(read, [0, 0, 16, 48, 64, 64, 69]);
    }
}
