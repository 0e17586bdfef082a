//! What all pictures share: how large they are, their title, and their legend.

use sizeleak_text::width;
use svg::Document;
use svg::node::element::{Description, Group, Title};
use thiserror::Error;

use super::shapes::{TEXT, rectangle, rounded, text};

/// Between the edge and what is drawn.
pub(super) const MARGIN: f64 = 20.0;
/// The height of text that pictures are laid out with; [`PictureSize::scale`] enlarges all of it.
const FONT: f64 = 12.0;
/// The width of a column of text: somewhat more than a digit has on average.
const LETTER: f64 = 6.4;
const LEGEND_ROW: f64 = 18.0;
/// Between two columns of a legend, and between a sample and its name.
const LEGEND_GAP: f64 = 16.0;
const SAMPLE_GAP: f64 = 6.0;

/// How large a picture is to be, in pixels.
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

/// The size is not enough for all that is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{needs} a {dimension} of {least} pixels: give `--{dimension} {least}`, or {less}")]
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
}
