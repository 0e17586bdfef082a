//! What all pictures share: how large they are, their title, and where the entries of their legend stand.

use svg::Document;
use svg::node::element::{Description, Title};
use thiserror::Error;

use super::shapes::{TEXT, rectangle, text};

/// Between the edge and what is drawn.
pub(super) const MARGIN: f64 = 20.0;
const LEGEND_ROW: f64 = 20.0;
const LEGEND_ENTRY: f64 = 165.0;

/// How large a picture is to be, in pixels.
#[derive(Debug, Clone, Copy, Default)]
pub struct PictureSize {
    /// `None` for a width by what is drawn.
    pub width: Option<u32>,
    /// `None` for a height by what is drawn.
    pub height: Option<u32>,
}

/// The height is not enough for all that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{count} {parts} need a height of {least} pixels: give `--height {least}`, or {less}")]
pub struct TooSmall {
    pub(super) count: usize,
    pub(super) parts: &'static str,
    pub(super) least: u32,
    /// What needs less height.
    pub(super) less: &'static str,
}

/// An empty picture with a title, and two lines below it.
pub(super) fn page((width, height): (f64, f64), title: &str, lines: [&str; 2]) -> Document {
    let described = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    let [first, second] = lines;
    Document::new()
        .set("width", width)
        .set("height", height)
        .set("viewBox", (0, 0, width, height))
        .set("role", "img")
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .set("fill", TEXT)
        .add(Title::new(title))
        .add(Description::new().add(svg::node::Text::new(described)))
        .add(rectangle(0.0, 0.0, width, height).set("fill", "#ffffff"))
        .add(text(MARGIN, 28.0, title).set("font-size", 18))
        .add(text(MARGIN, 48.0, first))
        .add(text(MARGIN, 64.0, second))
}

/// The rows of a legend.
#[derive(Debug)]
pub(super) struct LegendRows {
    columns: usize,
    /// Their height.
    pub(super) height: f64,
}

impl LegendRows {
    /// The rows of so many entries in a picture of this width.
    pub(super) fn new(width: f64, entries: usize) -> Self {
        let columns = ((width - 2.0 * MARGIN) / LEGEND_ENTRY).floor().max(1.0) as usize;
        Self { columns, height: LEGEND_ROW * entries.div_ceil(columns) as f64 }
    }

    /// Where an entry begins, from the base line of the first row.
    pub(super) fn place(&self, at: usize, first: f64) -> (f64, f64) {
        let (row, column) = (at / self.columns, at % self.columns);
        (MARGIN + LEGEND_ENTRY * column as f64, first + LEGEND_ROW * row as f64)
    }
}
