//! One plot as SVG.

use super::escaped;
use std::fmt::Write as _;

/// Room for the labels of the axes, in the plot's own units.
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 28.0;
/// Lines of the grid in each direction, where an axis does not say.
const TICKS: f64 = 5.0;

/// One axis.
pub(super) struct Axis {
    low: f64,
    high: f64,
    every: f64,
    name: &'static str,
    label: fn(f64) -> String,
}

impl Axis {
    pub(super) fn new(low: f64, high: f64, name: &'static str, label: fn(f64) -> String) -> Self {
        Self {
            low,
            high,
            every: (high - low) / TICKS,
            name,
            label,
        }
    }

    /// Another distance between two lines of the grid.
    pub(super) fn every(mut self, step: f64) -> Self {
        self.every = step;
        self
    }

    /// Where a value lies, 0..=1.
    fn place(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let count = ((self.high - self.low) / self.every + 0.001) as usize;
        (0..=count).map(|tick| self.low + tick as f64 * self.every)
    }
}

/// How a line is drawn, with the number of its colour.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stroke {
    Full(usize),
    Faint(usize),
    Dashed(usize),
}

/// A dot.
pub(super) struct Mark {
    pub(super) x: f64,
    pub(super) y: f64,
    /// In the plot's own units.
    pub(super) radius: f64,
    pub(super) colour: usize,
    pub(super) title: String,
}

/// A plot under way.
pub(super) struct Chart {
    title: String,
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
    marks: String,
}

impl Chart {
    pub(super) fn new(title: &str, width: f64, height: f64) -> Self {
        let axis = || Axis::new(0.0, 1.0, "", |at| at.to_string());
        Self {
            title: title.to_owned(),
            width,
            height,
            x: axis(),
            y: axis(),
            marks: String::new(),
        }
    }

    pub(super) fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    pub(super) fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let width = self.width - LEFT - RIGHT;
        let height = self.height - TOP - BOTTOM;
        (
            LEFT + self.x.place(x) * width,
            TOP + (1.0 - self.y.place(y)) * height,
        )
    }

    /// A line through points, with a gap where there is none.
    pub(super) fn line(
        &mut self,
        name: &str,
        stroke: Stroke,
        points: impl Iterator<Item = Option<(f64, f64)>>,
    ) {
        let mut path = String::new();
        let mut pen = 'M';
        // Writing to a string does not fail.
        for point in points {
            let Some((x, y)) = point else {
                pen = 'M';
                continue;
            };
            let (x, y) = self.at(x, y);
            let _ = write!(path, "{pen}{x:.1} {y:.1}");
            pen = 'L';
        }
        let (class, colour) = match stroke {
            Stroke::Full(colour) => ("line", colour),
            Stroke::Faint(colour) => ("line faint", colour),
            Stroke::Dashed(colour) => ("line dash", colour),
        };
        let _ = write!(
            self.marks,
            "<path class=\"{class}\" style=\"stroke:var(--c{colour})\" d=\"{path}\"><title>{}</title></path>",
            escaped(name)
        );
    }

    pub(super) fn dot(&mut self, mark: Mark) {
        let (x, y) = self.at(mark.x, mark.y);
        let _ = write!(
            self.marks,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" style=\"fill:var(--c{});fill-opacity:.55\"><title>{}</title></circle>",
            mark.radius,
            mark.colour,
            escaped(&mark.title)
        );
    }

    pub(super) fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.title)
        );
        for value in self.y.ticks() {
            let (_, y) = self.at(self.x.low, value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                width - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                (self.y.label)(value)
            );
        }
        for value in self.x.ticks() {
            let (x, bottom) = self.at(value, self.y.low);
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                (self.x.label)(value)
            );
        }
        svg.push_str(&self.marks);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"{LEFT}\" y=\"{TOP}\" dx=\"6\" dy=\"8\">{}</text></svg>",
            width - RIGHT,
            height - 4.0,
            self.x.name,
            self.y.name
        );
        svg
    }
}
