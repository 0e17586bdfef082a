//! Charts of numbers: of the tables that the page of a report has, and of what commands write for `sizeleak plot`.

use std::collections::BTreeSet;

use svg::node::element::Path;
use svg::node::element::path::Data;

use super::page::{COLOURS, Key, PictureSize, TooSmall, clean, colour_step, rectangle, rounded, rule};
use super::panel::{
    DIAMONDS, DOTS, Heading, PALE, Panel, SERIES, SQUARES, Style, Surroundings, TRIANGLES, reference, shade_key,
};
use super::scale::Scale;

const MAX_NAME: usize = 30;
const MAX_FORM: usize = 24;
/// Between two ticks below and on the left, in pixels.
const BELOW: f64 = 40.0;
const LEFT: f64 = 24.0;
/// The share of a row that a bar takes, and of a panel that the bars of numbers of answers take.
const BAR: f64 = 0.7;
const LOW_BAR: f64 = 0.2;
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
    /// Points with their intervals, beside the diagonal: the probability that answers state, the share of them that is right
    /// within its interval, and how many answers state a probability of this tenth.
    Reliability,
    /// Lines through points with their intervals: the number of labels, which doubles from point to point, and the share of
    /// commands of each line.
    Growth,
    /// A field of shaded cells: the hour, the row, and how dark it is.
    Hours,
    /// A range for each row: its name, the middle, what most reach, and the greatest value, in microseconds. And the same
    /// of a second range, if there is one.
    Ranges,
}

#[derive(Debug, Clone)]
pub struct Chart {
    pub kind: ChartKind,
    pub size: PictureSize,
    /// What stands above it in place of its title; nothing if that is empty.
    pub heading: Option<String>,
    /// What it shows, for those who do not see it, too.
    pub title: String,
    /// From how much it was computed.
    pub about: String,
    /// The columns in the order of the kind: their names, and whether they are shares.
    pub columns: Vec<(String, bool)>,
    /// The names of the rows, and their values in these columns.
    pub rows: Vec<(String, Vec<ChartValue>)>,
    pub guessing: Option<f64>,
}

/// A value, as far as it is a number and known, with the ends of its interval, if it has one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChartValue {
    pub value: Option<f64>,
    pub ends: Option<[f64; 2]>,
}

/// Points with the ends of their intervals, if they have one.
struct Series {
    name: String,
    style: Style,
    /// Of the marks.
    class: &'static str,
    /// How far points are moved to the right, in pixels, so that intervals at the same place can be seen.
    shift: f64,
    points: Vec<(f64, f64, Option<[f64; 2]>)>,
}

/// A line that points are compared with.
enum Reference {
    Diagonal,
    Level(f64),
}

/// Points between two axes, the lines that they are compared with, and the bars behind them: where each begins, a tenth of
/// the axis wide, and how high it is.
struct Scatter {
    series: Vec<Series>,
    references: Vec<(String, Style, Reference)>,
    bars: Vec<(f64, f64)>,
}

/// How far the lines of a [`ChartKind::Growth`] are apart, and how they are drawn: the last one is on its place.
const GROWTH: [(f64, Style); 3] = [(-5.0, TRIANGLES.joined()), (5.0, SQUARES.joined()), (0.0, DOTS.joined())];

/// The ranges of a row: what they are of, how they are drawn, how far from the middle of the row, as a share of it, and
/// the first of their columns.
const RANGES: [(&str, Style, f64, usize); 2] =
    [("work on a frame", DOTS, -0.18, 1), ("wait of a frame", SQUARES, 0.18, 4)];

impl Chart {
    pub fn svg(&self) -> Result<String, TooSmall> {
        match self.kind {
            ChartKind::Bars => self.bars(),
            ChartKind::Spectrum => self.spectrum(),
            ChartKind::Points => self.points(),
            ChartKind::Reliability => self.reliability(),
            ChartKind::Growth => self.growth(),
            ChartKind::Hours => self.hours(),
            ChartKind::Ranges => self.ranges(),
        }
    }

    /// A value as it is drawn: shares in percent.
    fn value(&self, row: &[ChartValue], column: usize) -> Option<f64> {
        Some(self.factor(column) * row.get(column)?.value?)
    }

    fn ends(&self, row: &[ChartValue], column: usize) -> Option<[f64; 2]> {
        Some(row.get(column)?.ends?.map(|end| self.factor(column) * end))
    }

    fn factor(&self, column: usize) -> f64 {
        if self.columns.get(column).is_some_and(|(_, is_share)| *is_share) { 100.0 } else { 1.0 }
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
            Some((name, false)) => name.clone(),
            None => String::new(),
        }
    }

    fn panel(&self, keys: Vec<Key>, around: Surroundings) -> Result<Panel, TooSmall> {
        let heading = Heading { title: self.heading.as_deref(), own: &self.title, about: &self.about };
        Panel::new(self.size, heading, keys, around)
    }

    /// A panel of rows with these names, which has room for so many; with the height of a row.
    fn named_panel(&self, names: &[&str], rows: usize, keys: Vec<Key>) -> Result<(Panel, f64), TooSmall> {
        let names: Vec<String> = names.iter().map(|name| clean(name, MAX_NAME)).collect();
        let mut panel = self.panel(keys, Surroundings { rows, ..Surroundings::rows(&names) })?;
        let row = panel.name_rows(&names);
        Ok((panel, row))
    }

    fn names(&self) -> Vec<&str> {
        self.rows.iter().map(|(name, _)| &**name).collect()
    }

    fn bars(&self) -> Result<String, TooSmall> {
        let Self { columns, rows, .. } = self;
        let lengths = 1..columns.len();
        let several = lengths.len() > 1;
        let shade =
            |column: usize| if several { SHADES.get(column - 1).copied().unwrap_or(SHADES[1]) } else { SHADES[1] };
        let keys = (1..).zip(columns.iter().skip(1)).filter(|_| several);
        let keys = keys.map(|(at, (name, _))| shade_key(name, shade(at))).collect();
        let (mut panel, row) = self.named_panel(&self.names(), rows.len() * lengths.len(), keys)?;
        let most = self.most(lengths.clone());
        let x = Scale::linear((0.0, most), most / 100.0, panel.x_length(), BELOW);
        panel.axis_below(&x, &if several { "%".to_owned() } else { self.axis(1) });
        let height = BAR * row / lengths.len() as f64;
        for (at, (_, values)) in rows.iter().enumerate() {
            let top = panel.top + (at as f64 + (1.0 - BAR) / 2.0) * row;
            for column in lengths.clone() {
                let Some(value) = self.value(values, column) else { continue };
                let (from, to) = (panel.x(&x, 0.0), panel.x(&x, value.max(0.0)));
                let bar = rectangle(from, top + (column - 1) as f64 * height, to - from, height);
                panel.add(bar.set("fill", shade(column)));
            }
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

    fn hours(&self) -> Result<String, TooSmall> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.names() {
            if !names.contains(&name) {
                names.push(name);
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

    fn ranges(&self) -> Result<String, TooSmall> {
        let series = || RANGES.into_iter().filter(|(.., first)| self.column(*first).next().is_some());
        let mut keys: Vec<Key> =
            series().map(|(name, style, ..)| style.joined().key(format!("{name}, median to 99 %"))).collect();
        keys.push(DIAMONDS.key("longest"));
        let (mut panel, row) = self.named_panel(&self.names(), self.rows.len(), keys)?;
        let times = (1..self.columns.len()).flat_map(|column| self.column(column));
        let x = Scale::logarithmic(times, panel.x_length(), BELOW);
        panel.axis_below(&x, "time for a frame (µs)");
        for (at, (_, values)) in self.rows.iter().enumerate() {
            let middle = panel.top + (at as f64 + 0.5) * row;
            if at > 0 {
                panel.add(rule(panel.left, middle - row / 2.0, panel.left + panel.width, middle - row / 2.0));
            }
            for (_, style, shift, first) in series() {
                let [median, most, longest] = [0, 1, 2].map(|at| self.value(values, first + at));
                let (Some(median), Some(most), Some(longest)) = (median, most, longest) else { continue };
                let y = middle + shift * row;
                let [median, most, longest] = [median, most, longest].map(|time| panel.x(&x, time));
                panel.add(style.straight((median, y), (longest, y)).set("stroke-dasharray", "1 2"));
                panel.add(style.straight((median, y), (most, y)).set("stroke-width", 3));
                panel.add(DIAMONDS.mark(longest, y));
                panel.add(style.mark(median, y).set("class", "latency"));
            }
        }
        Ok(panel.svg())
    }

    /// The points of a column, each where the first column says.
    fn line(&self, column: usize) -> Vec<(f64, f64, Option<[f64; 2]>)> {
        let point = |(_, row): &(_, Vec<ChartValue>)| {
            Some((self.value(row, 0)?, self.value(row, column)?, self.ends(row, column)))
        };
        self.rows.iter().filter_map(point).collect()
    }

    fn reliability(&self) -> Result<String, TooSmall> {
        let name = "share right, with interval of 95 %".to_owned();
        let tenth = |percents: f64| (percents / 10.0).floor().clamp(0.0, 9.0) * 10.0;
        let bar = |(_, row): &(_, Vec<ChartValue>)| Some((tenth(self.value(row, 0)?), self.value(row, 2)?));
        let drawn = Scatter {
            series: vec![Series { name, style: DOTS, class: "bin", shift: 0.0, points: self.line(1) }],
            references: vec![("right as often as stated".to_owned(), reference("5 3"), Reference::Diagonal)],
            bars: self.rows.iter().filter_map(bar).collect(),
        };
        let [x, y] = [BELOW, LEFT].map(|distance| move |length| percents(length, distance));
        let names = ["stated probability of the first candidate (%)", "first candidate right (%)"];
        self.scatter([(names[0], &x), (names[1], &y)], &drawn)
    }

    fn growth(&self) -> Result<String, TooSmall> {
        let lines = self.columns.iter().enumerate().skip(1);
        let styles = GROWTH.iter().skip(GROWTH.len().saturating_sub(lines.len()));
        let series = lines.zip(styles).map(|((column, (name, _)), (shift, style))| Series {
            name: name.clone(),
            style: *style,
            class: "point",
            shift: *shift,
            points: self.line(column),
        });
        let drawn = Scatter { series: series.collect(), references: Vec::new(), bars: Vec::new() };
        let x = |length| Scale::logarithmic(self.column(0), length, BELOW);
        let y = |length| percents(length, LEFT);
        self.scatter([("labelled commands to learn from", &x), ("commands (%)", &y)], &drawn)
    }

    /// Policies whose names differ by a number are a series; what costs nothing, and guessing, are lines.
    fn points(&self) -> Result<String, TooSmall> {
        let policy = |(name, row): &'_ (String, Vec<ChartValue>)| {
            Some((form(name).to_owned(), self.value(row, 1)?, self.value(row, 2)?))
        };
        let (policies, free): (Vec<_>, Vec<_>) =
            self.rows.iter().filter_map(policy).partition(|(_, cost, _)| *cost > 0.0);
        let forms: BTreeSet<&str> = policies.iter().map(|(form, ..)| &**form).collect();
        let series = forms.iter().zip(SERIES.iter().cycle()).map(|(name, style)| {
            let own = policies.iter().filter(|(form, ..)| form == name);
            let points: Vec<_> = own.map(|(_, cost, named)| (*cost, *named, None)).collect();
            let style = if points.len() > 2 { style.joined() } else { *style };
            Series { name: clean(name, MAX_FORM), style, class: "policy", shift: 0.0, points }
        });
        let free = free.first().map(|(.., named)| ("no padding", "7 3", *named));
        let guessing = self.guessing.map(|guessing| ("guessing", "7 3 2 3", 100.0 * guessing));
        let levels = free.into_iter().chain(guessing).map(|(name, dashes, named)| {
            (format!("{name} ({named:.1} %)"), reference(dashes), Reference::Level(named))
        });
        let drawn = Scatter { series: series.collect(), references: levels.collect(), bars: Vec::new() };
        let named = || self.column(2).chain(guessing.map(|(.., named)| named));
        let x = |length| Scale::logarithmic(policies.iter().map(|(_, cost, _)| *cost), length, BELOW);
        let y = |length| Scale::logarithmic(named(), length, LEFT);
        self.scatter([("bytes added to commands (%)", &x), ("command named (%)", &y)], &drawn)
    }

    fn scatter(&self, [x, y]: [(&str, &dyn Fn(f64) -> Scale); 2], drawn: &Scatter) -> Result<String, TooSmall> {
        let Scatter { series, references, bars } = drawn;
        let mut keys: Vec<Key> = series.iter().map(|series| series.style.key(&*series.name)).collect();
        keys.extend(references.iter().map(|(name, style, _)| style.key(&**name)));
        let most = bars.iter().map(|(_, height)| *height).fold(1.0, f64::max);
        keys.extend((!bars.is_empty()).then(|| shade_key(format!("answers (highest bar: {most})"), PALE)));
        let mut panel = self.panel(keys, Surroundings::axes("100"))?;
        let (x_axis, y_axis) = (x.1(panel.x_length()), y.1(panel.y_length()));
        for (from, height) in bars {
            let [from, to] = [*from, from + 10.0].map(|end| panel.x(&x_axis, end));
            let height = panel.height * LOW_BAR * height / most;
            let bar = rectangle(from + 1.0, panel.y(&y_axis, 0.0) - height, (to - from - 2.0).max(0.0), height);
            panel.add(bar.set("fill", PALE));
        }
        panel.axis_below(&x_axis, x.0);
        panel.axis_left(&y_axis, y.0);
        for (_, style, line) in references {
            let (right, place) = (panel.left + panel.width, |end| (panel.x(&x_axis, end), panel.y(&y_axis, end)));
            let ends = match line {
                Reference::Diagonal => [place(0.0), place(100.0)],
                Reference::Level(level) => [panel.left, right].map(|x| (x, panel.y(&y_axis, *level))),
            };
            panel.add(style.line(ends.into_iter()));
        }
        for Series { style, class, shift, points, .. } in series {
            let at = |panel: &Panel, x: f64, y: f64| (panel.x(&x_axis, x) + shift, panel.y(&y_axis, y));
            if style.dashes.is_some() {
                let line = style.line(points.iter().map(|(x, y, _)| at(&panel, *x, *y)));
                panel.add(line.set("class", "series"));
            }
            for (x, y, ends) in points {
                if let Some([low, high]) = ends.map(|ends| ends.map(|end| at(&panel, *x, end))) {
                    panel.add(style.straight(low, high));
                }
                let (x, y) = at(&panel, *x, *y);
                panel.add(style.mark(x, y).set("class", *class));
            }
        }
        Ok(panel.svg())
    }
}

fn percents(length: f64, min_distance: f64) -> Scale {
    Scale::linear((0.0, 100.0), 1.0, length, min_distance)
}

/// The form of a policy, without its number: `multiple` of `multiple:16`, `best table` of `best table of 24 buckets`.
fn form(policy: &str) -> &str {
    let name = policy.split_once(" of ").map_or(policy, |(name, _)| name);
    name.split_once(':').map_or(name, |(name, _)| name)
}
