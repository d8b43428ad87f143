//! Plain text tables.

use std::fmt;

/// Rows under a heading; the first column is text, the others are aligned to the right.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned).to_vec()],
        }
    }

    /// A table with these headings.
    pub(crate) fn with<'h>(headings: impl IntoIterator<Item = &'h str>) -> Self {
        Self {
            rows: vec![headings.into_iter().map(str::to_owned).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|r| r.get(column))
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                match column {
                    0 => line.push_str(&format!("  {cell}{pad}")),
                    _ => line.push_str(&format!("   {pad}{cell}")),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
            if index == 0 {
                let rule = widths.iter().sum::<usize>() + 3 * columns.saturating_sub(1);
                writeln!(f, "  {}", "─".repeat(rule))?;
            }
        }
        Ok(())
    }
}
