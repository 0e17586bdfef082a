//! What a report holds, whatever form it is written in: a verdict, three tiles and sections, whose figures are tables that
//! a chart may show.

use serde::Serialize;
use sizeleak_evaluation::statistics::{Interval, percent_within};
use sizeleak_text::percent;

/// The signs of units in the headings of tables.
const UNITS: [(&str, Unit); 3] = [("#", Unit::Count), (".", Unit::Decimal), ("%", Unit::Share)];

/// A value that is not known.
const NONE: &str = "–";

/// What everybody should know of all figures.
pub(crate) const CAPTION: &str = "Nothing is decrypted for any of this: whoever sees the lengths of encrypted records can \
    do it. All figures are sums over many commands; nothing here names a single command, or the time of a single event.";

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The figure that matters most.
    pub verdict: Verdict,
    /// Who names what how often.
    pub tiles: Vec<Tile>,
    /// What would stop the leak at the least cost, or why that is not known.
    pub fix: String,
    /// Everything else, in the order of the page.
    pub sections: Vec<Section>,
}

/// What a report says in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The sentence.
    pub sentence: String,
    /// What it means.
    pub meaning: String,
}

/// How often a secret is named by observers who see more and more.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// The secret.
    pub title: &'static str,
    /// Whether the shares were measured or computed, and of what.
    pub source: String,
    /// The observers; none if nothing is known of the secret.
    pub rows: Vec<TileRow>,
}

/// How often an observer names a secret.
#[derive(Debug, Clone, PartialEq)]
pub struct TileRow {
    /// What the observer sees.
    pub observer: &'static str,
    /// The share of commands; `None` if it is not known.
    pub share: Option<f64>,
    /// Its interval, where it is measured.
    pub interval: Option<Interval>,
    /// Whether the share is an upper bound.
    pub is_bound: bool,
}

/// A part of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// Its name in links.
    pub id: &'static str,
    /// What its figures show, a paragraph each, or what to give so that there are any. Words between backticks are code.
    pub text: Vec<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A table, and how it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name in links and files.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How it is read.
    pub note: String,
    /// Its figures.
    pub table: Table,
    /// How it is drawn; `None` for a table alone.
    pub chart: Option<Chart>,
}

/// Rows of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What the values are.
    pub columns: Vec<Column>,
    /// The values, one for each column.
    pub rows: Vec<Vec<Value>>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// What its numbers are.
    pub unit: Unit,
}

/// What numbers are, which says how they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No numbers; no sign.
    Words,
    /// Whole numbers: `#`.
    Count,
    /// Numbers of which two decimals are shown: `.`.
    Decimal,
    /// Shares, shown in percent: `%`.
    Share,
}

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Words, which may come from outside.
    Words(String),
    /// A number in the unit of its column.
    Number(f64),
    /// It is not known.
    Unknown,
}

/// How a table is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// What is drawn.
    pub kind: ChartKind,
    /// Which columns of the table are drawn, in the order of the kind.
    pub columns: &'static [usize],
    /// Where a line says what guessing reaches.
    pub guessing: Option<f64>,
}

/// What is drawn of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// A bar for each row: its name, and its length; or one for each of several lengths.
    Bars,
    /// A thin bar at each number: the number, its height, and how much of that is filled, if not all.
    Spectrum,
    /// A named point for each row: the name, what it costs, and what it leaves.
    Points,
    /// Points with their intervals, beside the diagonal: where, the value, and the ends of its interval.
    Reliability,
    /// The same, joined by a line; numbers double from point to point.
    Growth,
    /// A field of shaded cells: the hour, the row, and how dark it is.
    Hours,
    /// A range for each row, on a logarithmic axis: the name, the middle and the greatest value.
    Ranges,
}

impl ChartKind {
    /// A chart of these columns.
    pub fn of(self, columns: &'static [usize]) -> Option<Chart> {
        Some(Chart { kind: self, columns, guessing: None })
    }
}

impl Figure {
    /// A table with how it is read and drawn.
    pub fn new(
        id: &'static str,
        title: impl Into<String>,
        note: impl Into<String>,
        table: Table,
        chart: Option<Chart>,
    ) -> Self {
        Self { id, title: title.into(), note: note.into(), table, chart }
    }
}

impl Table {
    /// A table of the columns that a heading names, as in `action | bytes # | named %`: between bars, a name and the sign
    /// of its numbers, which is that of [`Unit`].
    pub fn new<const N: usize>(heading: &'static str, rows: impl IntoIterator<Item = [Value; N]>) -> Self {
        let columns = heading.split('|').map(|column| {
            let column = column.trim();
            let signed = UNITS.iter().find_map(|(sign, unit)| Some((column.strip_suffix(sign)?.trim_end(), *unit)));
            let (name, unit) = signed.unwrap_or((column, Unit::Words));
            Column { name, unit }
        });
        Self { columns: columns.collect(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// Each row as its values beside their columns.
    pub fn cells(&self) -> impl Iterator<Item = impl Iterator<Item = (&Column, &Value)>> {
        self.rows.iter().map(|row| self.columns.iter().zip(row))
    }
}

impl Column {
    /// A value as it is shown.
    pub fn shown(&self, value: &Value) -> String {
        match value {
            Value::Words(words) => sizeleak_text::escaped(words).into_owned(),
            Value::Number(number) => self.unit.shown(*number),
            Value::Unknown => NONE.to_owned(),
        }
    }

    /// Whether its values are aligned at their ends.
    pub fn is_numeric(&self) -> bool {
        self.unit != Unit::Words
    }
}

impl Unit {
    fn shown(self, number: f64) -> String {
        match self {
            Self::Share => percent(number),
            Self::Words | Self::Count if number.abs() < 1e15 => format!("{number:.0}"),
            Self::Decimal if number.abs() < 1e15 => format!("{number:.2}"),
            Self::Words | Self::Count | Self::Decimal => format!("{number:.1e}"),
        }
    }
}

impl Value {
    /// The value as other programs read it: all digits of a number, nothing where it is not known.
    pub fn exact(&self) -> String {
        match self {
            Self::Words(words) => sizeleak_text::escaped(words).into_owned(),
            Self::Number(number) => number.to_string(),
            Self::Unknown => String::new(),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<String> for Value {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }
}

impl TileRow {
    /// The share as it is shown.
    pub fn shown(&self) -> String {
        let Some(share) = self.share else { return NONE.to_owned() };
        let bound = if self.is_bound { "≤ " } else { "" };
        let shown = self.interval.map_or_else(|| percent(share), |interval| percent_within(share, interval));
        format!("{bound}{shown}")
    }
}

impl Section {
    /// A section.
    pub fn new(id: &'static str, text: Vec<String>, figures: Vec<Figure>) -> Self {
        Self { id, text, figures }
    }

    /// A section without figures, which says why.
    pub fn missing(id: &'static str, why: impl Into<String>) -> Self {
        Self::new(id, vec![why.into()], Vec::new())
    }
}
