//! Draws what reports say: how often answers are right, by the probability that they state; how precision grows with the
//! number of labels; and what padding gives away against what it costs.

use std::collections::BTreeSet;

use serde::Deserialize;
use sizeleak_text::counted;

use super::page::{PictureSize, TooSmall, clean, rectangle};
use super::panel::{DOTS, Heading, PALE, Panel, SERIES, SQUARES, Style, Surroundings, TRIANGLES, reference, shade_key};
use super::scale::Scale;

/// The share of the panel that the bars of numbers of answers take.
const BARS: f64 = 0.2;

/// The calibration of an evaluation, as far as it is drawn: what `sizeleak evaluate` writes as JSON.
#[derive(Debug, Deserialize)]
pub struct CalibrationFigure {
    after_pruning: Score,
}

#[derive(Debug, Deserialize)]
struct Score {
    commands: u64,
    calibration: Calibration,
}

#[derive(Debug, Deserialize)]
struct Calibration {
    expected_error: Option<f64>,
    by_chance: Option<f64>,
    bins: Vec<Bin>,
}

#[derive(Debug, Deserialize)]
struct Bin {
    from: f64,
    to: f64,
    answers: u64,
    probability: f64,
    right: f64,
    interval: Interval,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Interval {
    low: f64,
    pub(super) high: f64,
}

impl CalibrationFigure {
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let Score { commands, calibration } = &self.after_pruning;
        let most = calibration.bins.iter().map(|bin| bin.answers).max().unwrap_or(0);
        let percent = |share: Option<f64>| share.map_or("unknown".to_owned(), |it| format!("{:.1} %", it * 100.0));
        let about = format!(
            "{}; mean error {}, {} is expected by chance",
            counted(*commands, "command", "commands"),
            percent(calibration.expected_error),
            percent(calibration.by_chance)
        );
        let diagonal = reference("5 3");
        let keys = vec![
            DOTS.key("share right, with interval of 95 %"),
            diagonal.key("right as often as stated"),
            shade_key(format!("answers (highest bar: {most})"), PALE),
        ];
        let heading = Heading { title, own: "Are stated probabilities right?", about: &about };
        let mut panel = Panel::new(size, heading, keys, Surroundings::axes("100"))?;
        let x = Scale::linear((0.0, 100.0), 1.0, panel.x_length(), 40.0);
        let y = Scale::linear((0.0, 100.0), 1.0, panel.y_length(), 24.0);
        for bin in &calibration.bins {
            let (from, to) = (panel.x(&x, bin.from * 100.0) + 1.0, panel.x(&x, bin.to * 100.0) - 1.0);
            let height = panel.height * BARS * bin.answers as f64 / most.max(1) as f64;
            panel.add(rectangle(from, panel.y(&y, 0.0) - height, (to - from).max(0.0), height).set("fill", PALE));
        }
        panel.axis_below(&x, "stated probability of the first candidate (%)");
        panel.axis_left(&y, "first candidate right (%)");
        let ends = [0.0, 100.0].map(|end| (panel.x(&x, end), panel.y(&y, end)));
        panel.add(diagonal.line(ends.into_iter()));
        for bin in calibration.bins.iter().filter(|bin| bin.answers > 0) {
            let at = panel.x(&x, bin.probability * 100.0);
            let [low, right, high] =
                [bin.interval.low, bin.right, bin.interval.high].map(|share| panel.y(&y, share * 100.0));
            panel.add(DOTS.straight((at, low), (at, high)));
            panel.add(DOTS.mark(at, right).set("class", "bin"));
        }
        Ok(panel.svg())
    }
}

/// How far apart the marks of one number of labels are, so that their intervals can be seen.
const APART: f64 = 5.0;

/// A learning curve, as far as it is drawn: what `sizeleak evaluate --curve` writes as JSON.
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

struct Series(&'static str, Style, fn(&Figures) -> Share);

const CURVES: [Series; 3] = [
    Series("truth among the candidates", TRIANGLES.joined(), |figures| figures.precision),
    Series("among the first five", SQUARES.joined(), |figures| figures.top_5),
    Series("the first candidate", DOTS.joined(), |figures| figures.top_1),
];

impl LearningCurveFigure {
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let about = format!(
            "models of so many of {} labels, drawn at random, answer {}; bars are intervals of 95 %",
            self.drawn_from,
            counted(self.tested, "other command", "other commands")
        );
        let keys = CURVES.iter().map(|Series(name, style, _)| style.key(*name)).collect();
        let heading = Heading { title, own: "How many labels are enough?", about: &about };
        let mut panel = Panel::new(size, heading, keys, Surroundings::axes("100"))?;
        let x = Scale::logarithmic(self.points.iter().map(|point| point.labels as f64), panel.x_length(), 34.0);
        let y = Scale::linear((0.0, 100.0), 1.0, panel.y_length(), 24.0);
        panel.axis_below(&x, "labelled commands to learn from");
        panel.axis_left(&y, "commands (%)");
        for (Series(_, style, share), shift) in CURVES.iter().zip([-APART, APART, 0.0]) {
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

const MAX_NAME: usize = 24;

/// Policies against their cost, as far as they are drawn: what `sizeleak pad` writes as JSON.
#[derive(Debug, Deserialize)]
pub struct PaddingFigure {
    pub(super) prior: String,
    pub(super) guessing: f64,
    pub(super) points: Vec<PaddingPoint>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PaddingPoint {
    pub(super) policy: String,
    pub(super) added_share: f64,
    pub(super) named: f64,
}

impl PaddingFigure {
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let costs = || self.points.iter().filter(|point| point.added_share > 0.0);
        let forms: BTreeSet<&str> = costs().map(|point| form(&point.policy)).collect();
        let forms: Vec<&str> = forms.into_iter().collect();
        let style = |at: usize| {
            let style = SERIES.get(at % SERIES.len()).copied().unwrap_or(SERIES[0]);
            let of_form = forms.get(at).map_or(0, |form| costs().filter(|it| self::form(&it.policy) == *form).count());
            if of_form > 2 { style.joined() } else { style }
        };
        let without = self.points.iter().find(|point| point.added_share <= 0.0);
        let [of_none, of_guessing] = [reference("7 3"), reference("7 3 2 3")];
        let mut keys: Vec<_> =
            forms.iter().enumerate().map(|(at, form)| style(at).key(clean(form, MAX_NAME))).collect();
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        keys.extend(without.map(|point| of_none.key(format!("no padding ({})", percent(point.named)))));
        keys.push(of_guessing.key(format!("guessing ({})", percent(self.guessing))));
        let about = format!("commands as probable as {}", self.prior);
        let heading = Heading { title, own: "What padding hides, and what it costs", about: &about };
        let mut panel = Panel::new(size, heading, keys, Surroundings::axes("100"))?;
        let x = Scale::logarithmic(costs().map(|point| point.added_share * 100.0), panel.x_length(), 34.0);
        let named = self.points.iter().map(|point| point.named);
        let y = Scale::logarithmic(named.chain([self.guessing]).map(|named| named * 100.0), panel.y_length(), 24.0);
        panel.axis_below(&x, "bytes added to commands (%)");
        panel.axis_left(&y, "command named (%)");
        let place =
            |panel: &Panel, (share, named): (f64, f64)| (panel.x(&x, share * 100.0), panel.y(&y, named * 100.0));
        for (style, named) in [(of_none, without.map(|it| it.named)), (of_guessing, Some(self.guessing))] {
            let Some(named) = named else { continue };
            let y = panel.y(&y, named * 100.0);
            panel.add(style.line([(panel.left, y), (panel.left + panel.width, y)].into_iter()));
        }
        for (at, form) in forms.iter().enumerate() {
            let own: Vec<(f64, f64)> = costs()
                .filter(|point| self::form(&point.policy) == *form)
                .map(|point| place(&panel, (point.added_share, point.named)))
                .collect();
            if style(at).dashes.is_some() {
                panel.add(style(at).line(own.iter().copied()));
            }
            for (x, y) in own {
                panel.add(style(at).mark(x, y).set("class", "policy"));
            }
        }
        Ok(panel.svg())
    }
}

/// The form of a policy, without its number: `multiple` of `multiple:16`, `best table` of `best table of 24 buckets`.
fn form(policy: &str) -> &str {
    let name = policy.split_once(" of ").map_or(policy, |(name, _)| name);
    name.split_once(':').map_or(name, |(name, _)| name)
}
