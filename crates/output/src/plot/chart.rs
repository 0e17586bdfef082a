//! Charts of tables of numbers, as the page of a report has them; that of how long the stages of a pipeline take for a
//! frame is also a figure of its own.

use svg::node::element::path::Data;
use svg::node::element::{Group, Path};

use super::calibration::{PaddingFigure, PaddingPoint};
use super::page::{COLOURS, Key, PictureSize, TooSmall, clean, colour_step, rectangle, rounded, rule};
use super::panel::{DIAMONDS, DOTS, Heading, Panel, SQUARES, Style, Surroundings, reference, shade_key};
use super::scale::Scale;

const MAX_NAME: usize = 30;
/// Between two ticks below and on the left, in pixels.
const BELOW: f64 = 40.0;
const LEFT: f64 = 26.0;
/// The share of a row that a bar takes.
const BAR: f64 = 0.7;
/// Of two lengths, the one that is compared with, and the other; of two heights, the whole and its part.
const SHADES: [&str; 2] = [COLOURS[0], COLOURS[3]];
const MAX_BAR: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// A bar for each row: its name, and its length; or one for each of several lengths.
    Bars,
    /// A thin bar at each number: the number, its height, and how much of that is filled, if not all.
    Spectrum,
    /// A point for each policy: its name, what it costs, and what it leaves.
    Points,
    /// Points with their intervals, beside the diagonal: where, and the value within its interval.
    Reliability,
    /// The same, joined by a line; numbers double from point to point.
    Growth,
    /// A field of shaded cells: the hour, the row, and how dark it is.
    Hours,
    /// A range for each row: its name, the middle, what most reach, and the greatest value, in microseconds.
    Ranges,
}

#[derive(Debug)]
pub struct ChartNumbers<'a> {
    /// What it is, for those who do not see it.
    pub title: &'a str,
    /// The columns in the order of the kind: their names, and whether they are shares.
    pub columns: Vec<(&'a str, bool)>,
    /// The names of the rows, and their values in these columns, as far as they are numbers and known; behind the last
    /// one the ends of its interval, if it has one.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// What guessing reaches.
    pub guessing: Option<f64>,
}

impl ChartKind {
    /// The chart as SVG; `None` if there is nothing to draw, or no room for it.
    pub fn svg(self, numbers: &ChartNumbers<'_>) -> Option<String> {
        if numbers.rows.is_empty() {
            return None;
        }
        let drawn = match self {
            Self::Bars => numbers.bars(),
            Self::Spectrum => numbers.spectrum(),
            Self::Points => numbers.points(),
            Self::Reliability => numbers.intervals(|length| Scale::linear((0.0, 100.0), 1.0, length, BELOW)),
            Self::Growth => numbers.intervals(|length| Scale::logarithmic(numbers.column(0), length, BELOW)),
            Self::Hours => numbers.hours(),
            Self::Ranges => numbers.ranges(),
        };
        drawn.ok()
    }
}

impl ChartNumbers<'_> {
    /// A value as it is drawn: shares in percent.
    fn value(&self, row: &[Option<f64>], column: usize) -> Option<f64> {
        let of_column = self.columns.get(column).or(self.columns.last());
        let factor = if of_column.is_some_and(|(_, is_share)| *is_share) { 100.0 } else { 1.0 };
        row.get(column).copied().flatten().map(|value| factor * value)
    }

    fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.rows.iter().filter_map(move |(_, row)| self.value(row, column))
    }

    fn most(&self, columns: impl Iterator<Item = usize>) -> f64 {
        columns.flat_map(|column| self.column(column)).fold(f64::MIN_POSITIVE, f64::max)
    }

    fn axis(&self, column: usize) -> String {
        match self.columns.get(column) {
            Some((name, true)) => format!("{name} (%)"),
            Some((name, false)) => (*name).to_owned(),
            None => String::new(),
        }
    }

    /// A panel below nothing: the page has its title.
    fn panel(&self, keys: Vec<Key>, around: Surroundings) -> Result<Panel, TooSmall> {
        let heading = Heading { title: Some(""), own: self.title, about: "The table below has its figures." };
        Panel::new(PictureSize::default(), heading, keys, around)
    }

    fn named_panel(&self, names: &[String], rows: usize, keys: Vec<Key>) -> Result<(Panel, f64), TooSmall> {
        let names: Vec<String> = names.iter().map(|name| clean(name, MAX_NAME)).collect();
        let mut panel = self.panel(keys, Surroundings { rows, ..Surroundings::rows(&names) })?;
        let row = panel.name_rows(&names);
        Ok((panel, row))
    }

    fn bars(&self) -> Result<String, TooSmall> {
        let lengths = 1..self.columns.len();
        let several = lengths.len() > 1;
        let shade =
            |column: usize| if several { SHADES.get(column - 1).copied().unwrap_or(SHADES[1]) } else { SHADES[1] };
        let keys = lengths.clone().filter(|_| several);
        let mut keys: Vec<_> =
            keys.map(|at| shade_key(self.columns.get(at).map_or("", |(name, _)| name), shade(at))).collect();
        let guessed = reference("4 3");
        keys.extend(self.guessing.map(|_| guessed.key("guessing")));
        let names: Vec<String> = self.rows.iter().map(|(name, _)| name.clone()).collect();
        let (mut panel, row) = self.named_panel(&names, names.len() * lengths.len(), keys)?;
        let most = self.most(lengths.clone());
        let x = Scale::linear((0.0, most), most / 100.0, panel.x_length(), BELOW);
        panel.axis_below(&x, &if several { "%".to_owned() } else { self.axis(1) });
        let height = BAR * row / lengths.len() as f64;
        for (at, (_, values)) in self.rows.iter().enumerate() {
            let top = panel.top + (at as f64 + (1.0 - BAR) / 2.0) * row;
            for column in lengths.clone() {
                let Some(value) = self.value(values, column) else { continue };
                let (from, to) = (panel.x(&x, 0.0), panel.x(&x, value.max(0.0)));
                let bar = rectangle(from, top + (column - 1) as f64 * height, to - from, height);
                panel.add(bar.set("fill", shade(column)));
            }
        }
        if let Some(guessing) = self.guessing {
            let x = panel.x(&x, 100.0 * guessing);
            panel.add(guessed.line([(x, panel.top), (x, panel.bottom())].into_iter()));
        }
        Ok(panel.svg())
    }

    fn spectrum(&self) -> Result<String, TooSmall> {
        let is_whole = self.columns.len() < 3;
        let heights = if is_whole { &[(1, SHADES[1])][..] } else { &[(1, SHADES[0]), (2, SHADES[1])] };
        let mut panel = self.panel(Vec::new(), Surroundings::axes("10000"))?;
        let is_clock = self.columns.first().is_some_and(|(name, _)| *name == "hour");
        let (least, most) = (self.column(0).fold(f64::INFINITY, f64::min), self.most(0..1));
        let x = if is_clock {
            Scale::hours(panel.x_length())
        } else {
            Scale::linear((least, most), 1.0, panel.x_length(), BELOW)
        };
        let most = self.most(1..2);
        let y = Scale::linear((0.0, most), most / 100.0, panel.y_length(), LEFT);
        panel.axis_below(&x, &self.axis(0));
        panel.axis_left(&y, &self.axis(1));
        let width = ((x.at(1.0) - x.at(0.0)).abs() * 0.8).clamp(1.0, MAX_BAR);
        for (column, shade) in heights {
            let bars = self.rows.iter().filter_map(|(_, row)| Some((self.value(row, 0)?, self.value(row, *column)?)));
            let bars = bars.fold(Data::new(), |bars, (at, height)| {
                let foot = (rounded(panel.x(&x, at)), rounded(panel.y(&y, 0.0)));
                bars.move_to(foot).vertical_line_to(rounded(panel.y(&y, height)))
            });
            panel.add(Path::new().set("d", bars).set("stroke", *shade).set("stroke-width", rounded(width)));
        }
        Ok(panel.svg())
    }

    /// Shares with their intervals; without a logarithm, beside the diagonal.
    fn intervals(&self, x: impl Fn(f64) -> Scale) -> Result<String, TooSmall> {
        let mut panel = self.panel(Vec::new(), Surroundings::axes("100"))?;
        let (x, y) = (x(panel.x_length()), Scale::linear((0.0, 100.0), 1.0, panel.y_length(), LEFT));
        panel.axis_below(&x, &self.axis(0));
        panel.axis_left(&y, &self.axis(1));
        let is_diagonal = self.columns.first().is_some_and(|(_, is_share)| *is_share);
        let known = self.rows.iter().filter_map(|(_, row)| Some((self.value(row, 0)?, self.value(row, 1)?, row)));
        let known: Vec<_> = known.collect();
        let place = |at: f64, value: f64| (panel.x(&x, at), panel.y(&y, value));
        let line = if is_diagonal {
            reference("4 3").line([place(0.0, 0.0), place(100.0, 100.0)].into_iter())
        } else {
            DOTS.line(known.iter().map(|(at, value, _)| place(*at, *value)))
        };
        let spans = known.iter().filter_map(|(at, _, row)| {
            Some(DOTS.straight(place(*at, self.value(row, 2)?), place(*at, self.value(row, 3)?)))
        });
        let marks = known.iter().map(|(at, value, _)| place(*at, *value)).map(|(x, y)| DOTS.mark(x, y));
        let spans = spans.fold(Group::new(), Group::add);
        let marks = marks.fold(Group::new(), Group::add);
        panel.add(line);
        panel.add(spans);
        panel.add(marks);
        Ok(panel.svg())
    }

    fn hours(&self) -> Result<String, TooSmall> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in &self.rows {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let most = self.most(2..3);
        let key = shade_key(format!("{most:.1} {}", self.axis(2)), COLOURS[COLOURS.len() - 1]);
        let (mut panel, row) = self.named_panel(&names, names.len(), vec![key])?;
        let x = Scale::hours(panel.x_length());
        panel.axis_below(&x, &self.axis(0));
        let width = x.at(1.0) - x.at(0.0);
        for (name, values) in &self.rows {
            let at = names.iter().position(|other| other == name).unwrap_or(0);
            let (Some(hour), Some(value)) = (self.value(values, 0), self.value(values, 2)) else { continue };
            let (left, top) = (panel.x(&x, hour), panel.top + at as f64 * row);
            let colour = COLOURS.get(colour_step(value / most)).copied().unwrap_or_default();
            panel.add(rectangle(left, top + 1.0, width - 1.0, row - 2.0).set("fill", colour));
        }
        Ok(panel.svg())
    }

    fn points(&self) -> Result<String, TooSmall> {
        let point = |(policy, row): &(String, Vec<Option<f64>>)| {
            let share = |column: usize| row.get(column).copied().flatten();
            Some(PaddingPoint { policy: policy.clone(), added_share: share(1)?, named: share(2)? })
        };
        let points = self.rows.iter().filter_map(point).collect();
        let figure = PaddingFigure { prior: String::new(), guessing: self.guessing.unwrap_or(0.0), points };
        figure.svg(PictureSize::default(), Some(""))
    }

    fn ranges(&self) -> Result<String, TooSmall> {
        let stage = |(stage, row): &(String, Vec<Option<f64>>)| {
            let time = |column: usize| self.value(row, column).map(|microseconds| (1e3 * microseconds) as u64);
            let service = Quantiles { median: time(1)?, p99: time(2)?, longest: time(3)? };
            Some(StageLatency { stage: stage.clone(), service: Some(service), queue: None })
        };
        let stages: Vec<StageLatency> = self.rows.iter().filter_map(stage).collect();
        latency_svg(&stages, PictureSize::default(), Some(""))
    }
}

const MAX_STAGE_NAME: usize = 24;

#[derive(Debug)]
pub struct StageLatency {
    pub stage: String,
    /// The time for a frame; `None` if it is not known.
    pub service: Option<Quantiles>,
    /// The time that a frame waited for the stage; `None` if it is not known.
    pub queue: Option<Quantiles>,
}

/// Times of frames, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Quantiles {
    pub median: u64,
    pub p99: u64,
    pub longest: u64,
}

/// What is drawn of each stage, how, and how far from the middle of its row, as a share of that.
type Series = (&'static str, Style, f64, fn(&StageLatency) -> Option<Quantiles>);

const SERIES: [Series; 2] =
    [("work on a frame", DOTS, -0.18, |stage| stage.service), ("wait of a frame", SQUARES, 0.18, |stage| stage.queue)];

pub fn latency_svg(stages: &[StageLatency], size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
    let series = || SERIES.into_iter().filter(|(.., times)| stages.iter().any(|stage| times(stage).is_some()));
    let mut keys: Vec<_> =
        series().map(|(name, style, ..)| style.joined().key(format!("{name}, median to 99 %"))).collect();
    keys.push(DIAMONDS.key("longest"));
    let about = format!("{} stages; times of single frames, in microseconds", stages.len());
    let heading = Heading { title, own: "How long the stages take for a frame", about: &about };
    let names: Vec<String> = stages.iter().map(|stage| clean(&stage.stage, MAX_STAGE_NAME)).collect();
    let mut panel = Panel::new(size, heading, keys, Surroundings::rows(&names))?;
    let all = || stages.iter().flat_map(|stage| series().filter_map(|(.., times)| times(stage)));
    let times = all().flat_map(|Quantiles { median, longest, .. }| [median, longest]);
    let x = Scale::logarithmic(times.map(microseconds), panel.x_length(), 40.0);
    panel.axis_below(&x, "time for a frame (µs)");
    let row = panel.name_rows(&names);
    for (at, stage) in stages.iter().enumerate() {
        let middle = panel.top + (at as f64 + 0.5) * row;
        if at > 0 {
            panel.add(rule(panel.left, middle - row / 2.0, panel.left + panel.width, middle - row / 2.0));
        }
        for (_, style, shift, times) in series() {
            let Some(Quantiles { median, p99, longest }) = times(stage) else { continue };
            let y = middle + shift * row;
            let [median, p99, longest] = [median, p99, longest].map(|time| panel.x(&x, microseconds(time)));
            panel.add(style.straight((median, y), (longest, y)).set("stroke-dasharray", "1 2"));
            panel.add(style.straight((median, y), (p99, y)).set("stroke-width", 3));
            panel.add(DIAMONDS.mark(longest, y));
            panel.add(style.mark(median, y).set("class", "latency"));
        }
    }
    Ok(panel.svg())
}

fn microseconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1000.0
}
