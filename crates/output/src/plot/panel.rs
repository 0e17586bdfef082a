//! A figure of numbers: a panel with axes, below a title and above a legend, for a column of a paper;
//! and the marks and lines of its series of numbers. Each series has a colour of its own (Okabe and Ito's, which the
//! colour-blind tell apart) and a shape of its own, which print without colours keeps.

use sizeleak_text::wrapped;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Group, Line, Path, Rectangle};
use svg::{Document, Node};

use super::page::{
    Key, LETTER, Legend, MARGIN, PictureSize, TEXT, TooSmall, clean, rectangle, rounded, rule, sheet, text,
    text_around, text_before, text_width,
};
use super::scale::Scale;

/// A column of a paper, 3.5 inches wide, at 183 pixels an inch: its text is 7 points high.
const WIDTH: u32 = 640;
const TEXT_HEIGHT: u32 = 18;

/// The height of what is inside, and that of a row, unless the picture has a height.
const INSIDE: f64 = 160.0;
const ROW: f64 = 18.0;
const MIN_ROW: f64 = 9.0;

const MAX_IN_TITLE: usize = 200;

const TITLE_LINE: f64 = 19.0;
const ABOUT_LINE: f64 = 15.0;
const TITLE_FONT: f64 = 14.0;
/// The width of other text, compared with that of a title.
const TEXT_SHARE: f64 = 12.0 / TITLE_FONT;
/// Below the panel: the numbers of an axis, and its title.
const NUMBERS: f64 = 18.0;
const AXIS: f64 = 40.0;
const EDGE: f64 = 12.0;
const LEGEND_TOP: f64 = 18.0;
/// Between the frame and the ends of axes, so that marks there are seen.
const INSET: f64 = 7.0;
const MIN_PANEL: f64 = 70.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Heading<'a> {
    /// Of the user; an empty one leaves out all of the heading, for figures with a caption.
    pub(super) title: Option<&'a str>,
    pub(super) own: &'a str,
    /// From how much it was computed.
    pub(super) about: &'a str,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Surroundings {
    /// The width of labels on the left, of rows or the numbers of an axis.
    pub(super) labels: f64,
    pub(super) above: f64,
    pub(super) has_axis: bool,
    /// How many rows there are; none has an axis of numbers.
    pub(super) rows: usize,
}

impl Surroundings {
    /// Two axes of numbers; this is the widest on the left.
    pub(super) fn axes(widest: &str) -> Self {
        Self { labels: labels_width(["axis", widest].into_iter()), has_axis: true, ..Self::default() }
    }

    /// An axis of numbers below rows with these names.
    pub(super) fn rows(names: &[String]) -> Self {
        let labels = labels_width(names.iter().map(String::as_str)) - 8.0;
        Self { labels, has_axis: true, rows: names.len(), ..Self::default() }
    }
}

pub(super) struct Panel {
    document: Document,
    legend: Legend,
    axis: f64,
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Panel {
    pub(super) fn new(
        size: PictureSize,
        heading: Heading<'_>,
        keys: Vec<Key>,
        around: Surroundings,
    ) -> Result<Self, TooSmall> {
        let (all_width, font) = (size.width.or(Some(WIDTH)), size.font.or(Some(TEXT_HEIGHT)));
        let size = PictureSize { width: all_width, font, ..size };
        let all_width = size.width().unwrap_or_default();
        let (title, about) = (heading.title.unwrap_or(heading.own), clean(heading.about, MAX_IN_TITLE));
        let mut texts = Vec::new();
        let mut top = EDGE;
        if !title.is_empty() {
            for line in lines(&clean(title, MAX_IN_TITLE), (all_width - 2.0 * MARGIN) * TEXT_SHARE) {
                top += TITLE_LINE;
                texts.push(text(MARGIN, top - 4.0, &line).set("font-size", TITLE_FONT));
            }
            for line in lines(&about, all_width - 2.0 * MARGIN) {
                top += ABOUT_LINE;
                texts.push(text(MARGIN, top - 4.0, &line));
            }
            top += 8.0;
        }
        let legend = Legend::new(all_width, keys);
        let Surroundings { labels, above, has_axis, rows } = around;
        let (left, top, axis) = (MARGIN + labels, top + above, if has_axis { AXIS } else { 0.0 });
        let beside = left + MARGIN;
        let around = top + axis + legend.height + EDGE;
        let all_height = size.height().unwrap_or_else(|| (around + (ROW * rows as f64).max(INSIDE)).ceil());
        let (width, height) = (all_width - beside, all_height - around);
        let min_height = (MIN_ROW * rows as f64).max(MIN_PANEL);
        for (dimension, is_small, least) in
            [("width", width < MIN_PANEL, beside + MIN_PANEL), ("height", height < min_height, around + min_height)]
        {
            if is_small {
                let (needs, least) = ("the figure with its legend needs".to_owned(), size.pixels(least));
                return Err(TooSmall { needs, dimension, least, less: "a smaller `--font-size`" });
            }
        }
        let shown = if title.is_empty() { heading.own } else { title };
        let document = sheet((all_width, all_height), &size, &clean(shown, MAX_IN_TITLE), &about);
        let mut panel = Self { document, legend, axis, left, top, width, height };
        for text in texts {
            panel.add(text);
        }
        Ok(panel)
    }

    pub(super) fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.document.append(node);
    }

    pub(super) fn x(&self, scale: &Scale, value: f64) -> f64 {
        self.left + INSET + scale.at(value)
    }

    /// Where a value of the axis on the left is.
    pub(super) fn y(&self, scale: &Scale, value: f64) -> f64 {
        self.bottom() - INSET - scale.at(value)
    }

    pub(super) fn x_length(&self) -> f64 {
        self.width - 2.0 * INSET
    }

    pub(super) fn y_length(&self) -> f64 {
        self.height - 2.0 * INSET
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Writes the names of rows beside them; returns the height of a row.
    pub(super) fn name_rows(&mut self, names: &[String]) -> f64 {
        let height = self.height / names.len().max(1) as f64;
        for (at, name) in names.iter().enumerate() {
            let y = self.top + (at as f64 + 0.5) * height + 4.0;
            self.add(text_before(self.left - 7.0, y, name).set("class", "row"));
        }
        height
    }

    pub(super) fn axis_below(&mut self, scale: &Scale, title: &str) {
        for tick in scale.ticks() {
            let x = self.x(scale, *tick);
            self.add(rule(x, self.top, x, self.bottom() + 4.0));
            self.add(text_around(x, self.bottom() + NUMBERS, &tick.to_string()).set("class", "tick"));
        }
        self.add(text_around(self.left + self.width / 2.0, self.bottom() + AXIS - 4.0, title).set("class", "axis"));
    }

    pub(super) fn axis_left(&mut self, scale: &Scale, title: &str) {
        for tick in scale.ticks() {
            let y = self.y(scale, *tick);
            self.add(rule(self.left - 4.0, y, self.left + self.width, y));
            self.add(text_before(self.left - 7.0, y + 4.0, &tick.to_string()).set("class", "tick"));
        }
        self.title_left(title);
    }

    pub(super) fn title_left(&mut self, title: &str) {
        let (x, y) = (MARGIN - 6.0, self.top + self.height / 2.0);
        let turned = format!("rotate(-90 {x} {y})");
        self.add(text_around(x, y, title).set("class", "axis").set("transform", turned));
    }

    pub(super) fn svg(mut self) -> String {
        let frame: Rectangle = rectangle(self.left, self.top, self.width, self.height).set("fill", "none");
        self.add(frame.set("stroke", TEXT).set("stroke-width", 0.8));
        let legend = self.legend.draw(self.bottom() + self.axis + LEGEND_TOP);
        self.add(legend);
        format!("{}\n", self.document)
    }
}

pub(super) fn labels_width<'a>(labels: impl Iterator<Item = &'a str>) -> f64 {
    labels.map(text_width).fold(0.0, f64::max) + 14.0
}

fn lines(text: &str, width: f64) -> Vec<String> {
    wrapped(text, (width / LETTER) as usize, [""; 2])
}

/// What is shown without being a series, as bars and cells without a value.
pub(super) const PALE: &str = "#e3e3e3";
pub(super) const GREY: &str = "#767676";

const SAMPLE: f64 = 26.0;
/// Above the base line: where samples are drawn.
const SAMPLE_HEIGHT: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Dot,
    Ring,
    /// Straight lines around the place, in tenths of a pixel.
    Polygon(&'static [(i32, i32)]),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    colour: &'static str,
    /// `None` without marks.
    shape: Option<Shape>,
    /// The dashes of its line, as SVG writes them; empty for a line without gaps, and `None` without a line.
    pub(super) dashes: Option<&'static str>,
}

pub(super) const DOTS: Style = Style { colour: "#0072b2", shape: Some(Shape::Dot), dashes: None };
pub(super) const SQUARES: Style = Style {
    colour: "#d55e00",
    shape: Some(Shape::Polygon(&[(-35, -35), (35, -35), (35, 35), (-35, 35)])),
    dashes: None,
};
pub(super) const TRIANGLES: Style =
    Style { colour: "#009e73", shape: Some(Shape::Polygon(&[(0, -50), (45, 35), (-45, 35)])), dashes: None };
pub(super) const DIAMONDS: Style =
    Style { colour: "#cc79a7", shape: Some(Shape::Polygon(&[(0, -52), (45, 0), (0, 52), (-45, 0)])), dashes: None };

pub(super) const SERIES: [Style; 8] = [
    DOTS,
    SQUARES,
    TRIANGLES,
    DIAMONDS,
    Style { colour: "#e69f00", shape: Some(Shape::Polygon(&[(0, 50), (45, -35), (-45, -35)])), dashes: None },
    Style {
        colour: "#56b4e9",
        shape: Some(Shape::Polygon(&[(-50, -30), (50, -30), (50, 30), (-50, 30)])),
        dashes: None,
    },
    Style { colour: "#000000", shape: Some(Shape::Ring), dashes: None },
    Style { colour: GREY, shape: Some(Shape::Polygon(&[(-30, -50), (30, -50), (30, 50), (-30, 50)])), dashes: None },
];

pub(super) const fn reference(dashes: &'static str) -> Style {
    Style { colour: GREY, shape: None, dashes: Some(dashes) }
}

impl Style {
    pub(super) const fn joined(self) -> Self {
        Self { dashes: Some(""), ..self }
    }

    pub(super) fn mark(&self, x: f64, y: f64) -> Group {
        let round = || Circle::new().set("cx", rounded(x)).set("cy", rounded(y)).set("r", 3.8);
        // The white edge keeps marks apart that overlap.
        match self.shape {
            None => Group::new(),
            Some(Shape::Dot) => Group::new().add(round().set("fill", self.colour).set("stroke", "#ffffff")),
            Some(Shape::Ring) => {
                Group::new().add(round().set("fill", "#ffffff").set("stroke", self.colour).set("stroke-width", 1.6))
            }
            Some(Shape::Polygon(corners)) => {
                let corner = |(dx, dy): &(i32, i32)| (x + f64::from(*dx) / 10.0, y + f64::from(*dy) / 10.0);
                let path = path(corners.iter().map(corner)).close();
                Group::new().add(Path::new().set("d", path).set("fill", self.colour).set("stroke", "#ffffff"))
            }
        }
    }

    pub(super) fn line(&self, places: impl Iterator<Item = (f64, f64)>) -> Path {
        let line = Path::new().set("d", path(places)).set("fill", "none").set("stroke", self.colour);
        let line = line.set("stroke-width", 1.6).set("stroke-linejoin", "round");
        match self.dashes {
            None | Some("") => line,
            Some(dashes) => line.set("stroke-dasharray", dashes),
        }
    }

    pub(super) fn straight(&self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Line {
        rule(x1, y1, x2, y2).set("stroke", self.colour).set("stroke-width", 1.2)
    }

    pub(super) fn key(&self, name: impl Into<String>) -> Key {
        let mut sample = Group::new();
        if self.dashes.is_some() {
            sample = sample.add(self.line([(0.0, -SAMPLE_HEIGHT), (SAMPLE, -SAMPLE_HEIGHT)].into_iter()));
        }
        Key { name: name.into(), sample: sample.add(self.mark(SAMPLE / 2.0, -SAMPLE_HEIGHT)), width: SAMPLE }
    }
}

pub(super) fn shade_key(name: impl Into<String>, colour: &str) -> Key {
    let sample = rectangle(0.0, -10.0, 14.0, 11.0).set("fill", colour).set("stroke", TEXT).set("stroke-width", 0.4);
    Key { name: name.into(), sample: Group::new().add(sample), width: 14.0 }
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> Data {
    let step = |data: Data, (at, (x, y)): (usize, (f64, f64))| {
        let place = (rounded(x), rounded(y));
        if at == 0 { data.move_to(place) } else { data.line_to(place) }
    };
    places.enumerate().fold(Data::new(), step)
}
