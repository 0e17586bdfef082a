//! Draws how precision grows with the number of labels.

use serde::Deserialize;

use super::calibration::Interval;
use super::marks::{DOTS, SQUARES, Style, TRIANGLES};
use super::page::{PictureSize, TooSmall};
use super::panel::{Heading, Panel, Surroundings, labels_width};
use super::scale::Scale;

/// How far apart the marks of one number of labels are, so that their intervals can be seen.
const APART: f64 = 5.0;

/// A learning curve, as far as it is drawn: what `sizeleak learn --curve` writes as JSON.
#[derive(Debug, Deserialize)]
pub struct LearningCurveFigure {
    drawn_from: u64,
    tested: u64,
    points: Vec<Point>,
}

#[derive(Debug, Deserialize)]
struct Point {
    labels: u64,
    /// `None` if no model could be learned.
    after_pruning: Option<Figures>,
}

#[derive(Debug, Deserialize)]
struct Figures {
    precision: Share,
    top_1: Share,
    top_5: Share,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Share {
    median: f64,
    interval: Interval,
}

/// A share with its name and style.
struct Series(&'static str, Style, fn(&Figures) -> Share);

const SERIES: [Series; 3] = [
    Series("truth among the candidates", TRIANGLES.joined(), |figures| figures.precision),
    Series("among the first five", SQUARES.joined(), |figures| figures.top_5),
    Series("the first candidate", DOTS.joined(), |figures| figures.top_1),
];

impl LearningCurveFigure {
    /// As SVG.
    ///
    /// # Errors
    /// If the picture has no room for it.
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let about = format!(
            "models of so many of {} labels, drawn at random, answer {} other commands; bars are intervals of 95 %",
            self.drawn_from, self.tested
        );
        let keys = SERIES.iter().map(|Series(name, style, _)| style.key(*name)).collect();
        let heading = Heading { title, own: "How many labels are enough?", about: &about };
        let labels = labels_width(["axis", "100"].into_iter());
        let around = Surroundings { labels, has_axis: true, ..Surroundings::default() };
        let mut panel = Panel::new(size, heading, keys, around)?;
        let x = Scale::logarithmic(self.points.iter().map(|point| point.labels as f64), panel.x_length(), 34.0);
        let y = Scale::linear((0.0, 100.0), 1.0, panel.y_length(), 24.0);
        panel.axis_below(&x, "labelled commands to learn from");
        panel.axis_left(&y, "commands (%)");
        for (Series(_, style, share), shift) in SERIES.iter().zip([-APART, APART, 0.0]) {
            let of_point = |point: &Point| Some((point.labels as f64, share(point.after_pruning.as_ref()?)));
            let shares: Vec<(f64, Share)> = self.points.iter().filter_map(of_point).collect();
            let place =
                |panel: &Panel, labels: f64, share: f64| (panel.x(&x, labels) + shift, panel.y(&y, share * 100.0));
            let line = style.line(shares.iter().map(|(labels, share)| place(&panel, *labels, share.median)));
            panel.add(line.set("class", "series"));
            for (labels, Share { median, interval }) in shares {
                let ends = [interval.low, interval.high].map(|end| place(&panel, labels, end));
                panel.add(style.straight(ends[0], ends[1]));
                let (at, middle) = place(&panel, labels, median);
                panel.add(style.mark(at, middle));
            }
        }
        Ok(panel.svg())
    }
}
