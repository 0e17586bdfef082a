//! The marks and lines of series of numbers: each series has a colour of its own (Okabe and Ito's, which the colour-blind
//! tell apart) and a shape of its own, which print without colours keeps.

use svg::node::element::path::Data;
use svg::node::element::{Circle, Group, Line, Path};

use super::page::{Key, TEXT, rectangle, rounded, rule};

/// What is shown without being a series, as bars and cells without a value.
pub(super) const PALE: &str = "#e3e3e3";
pub(super) const GREY: &str = "#767676";

const SAMPLE: f64 = 26.0;
/// Above the base line: where samples are drawn.
const SAMPLE_HEIGHT: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Dot,
    Ring,
    /// Straight lines around the place, in tenths of a pixel.
    Polygon(&'static [(i32, i32)]),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    /// `None` without marks.
    pub(super) shape: Option<Shape>,
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
