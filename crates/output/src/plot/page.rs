//! What all pictures share: how large they are, their title and legend, texts, lines and rectangles, and colours.

use sizeleak_text::width;
use svg::Document;
use svg::node::element::path::Data;
use svg::node::element::{Circle, Description, Group, Line, Path, Rectangle, Text, Title};
use thiserror::Error;

pub(super) const MARGIN: f64 = 20.0;
/// The height of text that pictures are laid out with; [`PictureSize::scale`] enlarges all of it.
const FONT: f64 = 12.0;
/// The width of a column of text: somewhat more than a digit has on average.
pub(super) const LETTER: f64 = 6.4;
const LEGEND_ROW: f64 = 18.0;
/// Between two columns of a legend, and between a sample and its name.
const LEGEND_GAP: f64 = 16.0;
const SAMPLE_GAP: f64 = 6.0;

#[derive(Debug, Clone, Copy, Default)]
pub struct PictureSize {
    /// `None` for a width by what is drawn.
    pub width: Option<u32>,
    /// `None` for a height by what is drawn.
    pub height: Option<u32>,
    /// The height of text; lines and marks grow with it. `None` for a height by what is drawn.
    pub font: Option<u32>,
}

impl PictureSize {
    /// How much larger the picture is than it is laid out.
    pub(super) fn scale(&self) -> f64 {
        self.font.map_or(1.0, |font| f64::from(font) / FONT)
    }

    pub(super) fn width(&self) -> Option<f64> {
        self.width.map(|width| f64::from(width) / self.scale())
    }

    pub(super) fn height(&self) -> Option<f64> {
        self.height.map(|height| f64::from(height) / self.scale())
    }

    /// The pixels of a length that is laid out.
    pub(super) fn pixels(&self, length: f64) -> u32 {
        // Not up for what computing with fractions adds.
        (length * self.scale() - 1e-6).ceil() as u32
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{needs} a {dimension} of {least} pixels: give a larger `--size`, or {less}")]
pub struct TooSmall {
    /// As "5 lanes need".
    pub(super) needs: String,
    pub(super) dimension: &'static str,
    pub(super) least: u32,
    pub(super) less: &'static str,
}

pub(super) fn sheet((width, height): (f64, f64), size: &PictureSize, title: &str, about: &str) -> Document {
    let scaled = |length: f64| rounded(length * size.scale());
    Document::new()
        .set("width", scaled(width))
        .set("height", scaled(height))
        .set("viewBox", (0, 0, width, height))
        .set("role", "img")
        .set("font-family", "sans-serif")
        .set("font-size", FONT)
        .set("fill", TEXT)
        .add(Title::new(title))
        .add(Description::new().add(svg::node::Text::new(about)))
        .add(rectangle(0.0, 0.0, width, height).set("fill", "#ffffff"))
}

pub(super) fn page(extent: (f64, f64), size: &PictureSize, title: &str, lines: [&str; 2]) -> Document {
    let described = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let [first, second] = lines;
    sheet(extent, size, title, &described)
        .add(text(MARGIN, 28.0, title).set("font-size", 18))
        .add(text(MARGIN, 48.0, first))
        .add(text(MARGIN, 64.0, second))
}

pub(super) fn text_width(text: &str) -> f64 {
    width(text) as f64 * LETTER
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    /// The sign, drawn from 0 on, on the base line 0.
    pub(super) sample: Group,
    pub(super) width: f64,
}

#[derive(Debug)]
pub(super) struct Legend {
    keys: Vec<Key>,
    columns: usize,
    column: f64,
    pub(super) height: f64,
}

impl Legend {
    pub(super) fn new(width: f64, keys: Vec<Key>) -> Self {
        let needs = |key: &Key| key.width + SAMPLE_GAP + text_width(&key.name) + LEGEND_GAP;
        let column = keys.iter().map(needs).fold(1.0, f64::max);
        let columns = ((width - 2.0 * MARGIN + LEGEND_GAP) / column).floor().max(1.0) as usize;
        let rows = keys.len().div_ceil(columns);
        // As few columns as have as few rows.
        let columns = keys.len().div_ceil(rows.max(1)).max(1);
        Self { keys, columns, column, height: LEGEND_ROW * rows as f64 }
    }

    pub(super) fn draw(&self, first: f64) -> Group {
        let mut group = Group::new().set("class", "legend");
        for (at, key) in self.keys.iter().enumerate() {
            let (row, column) = (at / self.columns, at % self.columns);
            let (x, y) = (MARGIN + self.column * column as f64, first + LEGEND_ROW * row as f64);
            let sample = key.sample.clone().set("transform", format!("translate({} {})", rounded(x), rounded(y)));
            group = group.add(sample).add(text(x + key.width + SAMPLE_GAP, y, &key.name));
        }
        group
    }
}

/// Probabilities from 0 to 1 in five steps of lightness, distinct also in print and for the colour-blind.
pub(super) const COLOURS: [&str; 5] = ["#a6bddb", "#74a9cf", "#3690c0", "#0570b0", "#023858"];
pub(super) const UNEXPLAINED: &str = "#d55e00";
pub(super) const DEVIATION: &str = "#aa3377";
pub(super) const TEXT: &str = "#222222";
const RULE: &str = "#dddddd";

pub(super) fn colour_step(probability: f64) -> usize {
    ((probability * COLOURS.len() as f64) as usize).min(COLOURS.len() - 1)
}

pub(super) fn colour(probability: Option<f64>) -> &'static str {
    let step = probability.map(colour_step);
    step.and_then(|step| COLOURS.get(step)).copied().unwrap_or(UNEXPLAINED)
}

/// A text without characters that XML does not allow, or that would turn the order of others, truncated to this many.
pub(super) fn clean(text: &str, most: usize) -> String {
    let text = &sizeleak_text::escaped(text);
    let is_allowed = |character: char| !matches!(character, '\u{fffe}' | '\u{ffff}');
    let shown = text.chars().take(most);
    let mut clean: String = shown.map(|character| if is_allowed(character) { character } else { '\u{fffd}' }).collect();
    if text.chars().nth(most).is_some() {
        clean.push('…');
    }
    clean
}

pub(super) fn text(x: f64, y: f64, content: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

pub(super) fn text_before(x: f64, y: f64, content: &str) -> Text {
    text(x, y, content).set("text-anchor", "end")
}

pub(super) fn text_around(x: f64, y: f64, content: &str) -> Text {
    text(x, y, content).set("text-anchor", "middle")
}

pub(super) fn rule(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    let line = Line::new().set("x1", rounded(x1)).set("y1", rounded(y1)).set("x2", rounded(x2));
    line.set("y2", rounded(y2)).set("stroke", RULE)
}

pub(super) fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    let corner = Rectangle::new().set("x", rounded(x)).set("y", rounded(y));
    corner.set("width", rounded(width)).set("height", rounded(height))
}

pub(super) fn outline(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    rectangle(x, y, width, height).set("fill", "none").set("stroke", TEXT)
}

pub(super) fn circle(x: f64, y: f64) -> Circle {
    Circle::new().set("cx", rounded(x)).set("cy", rounded(y)).set("r", 2.5)
}

pub(super) fn diamond(x: f64, y: f64) -> Path {
    let at = |dx: f64, dy: f64| (rounded(x + dx), rounded(y + dy));
    let corners = Data::new().move_to(at(0.0, -6.0)).line_to(at(5.0, 0.0)).line_to(at(0.0, 6.0)).line_to(at(-5.0, 0.0));
    Path::new().set("d", corners.close()).set("fill", DEVIATION)
}

/// To a hundredth of a pixel, which keeps the file small.
pub(super) fn rounded(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_legend_is_within_the_picture() {
        let key = |at: usize| Key { name: "x".repeat(at), sample: Group::new(), width: 12.0 };
        for width in [200.0, 427.0, 2000.0] {
            let legend = Legend::new(width, (0..9).map(key).collect());
            let (column, columns) = (legend.column, legend.columns as f64);
            assert!(columns < 1.5 || MARGIN + column * columns <= width, "{width}: {column} × {columns}");
            assert_eq!((legend.height / LEGEND_ROW).round() as usize, 9_usize.div_ceil(legend.columns));
        }
    }

    #[test]
    fn colour_depends_on_the_probability() {
        let shown = |probabilities: &[f64]| probabilities.iter().map(|it| colour(Some(*it))).collect::<Vec<_>>();
        assert_eq!(shown(&[0.0, 0.19, 0.2, 0.79, 0.8, 1.0]), [0, 0, 1, 3, 4, 4].map(|at| COLOURS[at]));
        assert_eq!(shown(&[-1.0, f64::NAN, 7.0]), [0, 0, 4].map(|at| COLOURS[at]));
        assert_eq!(colour(None), UNEXPLAINED);
    }

    #[test]
    fn names_lose_characters_that_xml_does_not_allow() {
        assert_eq!(clean("a\u{0}b\u{ffff}", 20), "a\\u{0}b\u{fffd}");
        // Nor may a name turn what stands behind it.
        assert_eq!(clean("lamp\u{202e}no", 20), "lamp\\u{202e}no");
        assert_eq!(clean(&"é".repeat(30), 20), "é".repeat(20) + "…");
    }
}
