//! The two forms of a report, with the same sentences and tables: Markdown, for an issue or a wiki, and one HTML page,
//! which loads nothing. The page is complete as it is written; its script only sorts tables, and turns between light
//! and dark. And text as any Markdown has it.

use std::fmt::Write as _;

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use sizeleak_output::plot::Chart;

use crate::document::{CAPTION, Figure, Report, Tile, Value};

/// Rows of a table beyond so many are only counted: a wiki shows no longer ones, and the page has them.
const MAX_ROWS: usize = 60;

pub(crate) fn markdown(report: &Report) -> String {
    let mut text = format!("# What message sizes give away\n\n**{}**\n\n", markdown_prose(&report.verdict.sentence));
    let _ = writeln!(text, "{}\n", markdown_prose(&report.verdict.meaning));
    write_tiles(&mut text, report);
    let _ = writeln!(text, "**Cheapest fix.** {}\n", markdown_prose(&report.fix));
    let _ = writeln!(text, "{CAPTION}");
    for section in &report.sections {
        let _ = writeln!(text, "\n## {}", section.title());
        for paragraph in &section.text {
            let _ = writeln!(text, "\n{}", markdown_prose(paragraph));
        }
        section.figures.iter().for_each(|figure| write_figure(&mut text, figure));
    }
    let _ = writeln!(text, "\nWritten by sizeleak {}.", env!("CARGO_PKG_VERSION"));
    text
}

fn write_tiles(text: &mut String, report: &Report) {
    let row = |tile: &Tile| {
        let [guessing, size, replies] = tile.named.clone()?;
        Some([tile.title.into(), guessing, size, replies, tile.source.as_str().into()])
    };
    let columns = "named correctly | by guessing | by size | by size and replies |";
    let figure = Figure::new("tiles", columns, report.tiles.iter().filter_map(row));
    if figure.rows.is_empty() {
        return;
    }
    text.push_str(&(markdown_table(&figure.columns, &figure.numeric(), shown(&figure.rows)) + "\n"));
}

fn write_figure(text: &mut String, figure: &Figure) {
    let _ = writeln!(text, "\n### {}", words(&figure.title));
    if !figure.note.is_empty() {
        let _ = writeln!(text, "\n{}", words(&figure.note));
    }
    if figure.rows.is_empty() {
        text.push_str("\nNone.\n");
        return;
    }
    let rows = figure.rows.get(..MAX_ROWS).unwrap_or(&figure.rows);
    let _ = write!(text, "\n{}", markdown_table(&figure.columns, &figure.numeric(), shown(rows)));
    if let Some(more @ 1..) = figure.rows.len().checked_sub(MAX_ROWS) {
        let _ = writeln!(text, "\n{more} rows more are in the page: `-o report.html`.");
    }
}

fn shown(rows: &[Vec<Value>]) -> impl Iterator<Item = Vec<String>> {
    rows.iter().map(|row| row.iter().map(Value::shown).collect())
}

/// A table, whose columns of numbers are aligned at their ends.
pub fn markdown_table(columns: &[String], are_numbers: &[bool], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cell = |text: &String| {
        let shown = words(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        // Rows that belong to the one above are indented.
        if text.starts_with("  ") { format!("&emsp;{shown}") } else { shown }
    };
    let row = |cells: &[String]| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rule: Vec<String> = are_numbers.iter().map(|it| if *it { "---:" } else { "---" }.to_owned()).collect();
    row(columns) + &row(&rule) + &rows.into_iter().map(|cells| row(&cells)).collect::<String>()
}

/// A sentence, whose words between backticks are code.
pub fn markdown_prose(text: &str) -> String {
    let piece = |piece: Piece<'_>| match piece {
        Piece::Words(text) => words(text),
        Piece::Code(code) => format!("`{code}`"),
    };
    pieces(&sizeleak_text::escaped(text)).map(piece).collect()
}

/// Text in which no character has a meaning for Markdown or HTML.
fn words(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in sizeleak_text::escaped(text).chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Words(&'a str),
    Code(&'a str),
}

/// The parts of a sentence: what stands between two backticks is code. A last one without a partner is none.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let pairs = text.matches('`').count() / 2;
    text.splitn(2 * pairs + 1, '`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { Piece::Code(part) } else { Piece::Words(part) })
}

const SCRIPT: &str = include_str!("../page/page.js");

const STYLE: &str = include_str!("../page/style.css");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    report: &'a Report,
    version: &'a str,
    style: &'a str,
    script: &'a str,
    /// The only script that may run: one that came with a name would not.
    script_hash: String,
}

pub(crate) fn page(report: &Report) -> String {
    let script_hash = BASE64_STANDARD.encode(Sha256::digest(SCRIPT));
    let page = Page { report, version: env!("CARGO_PKG_VERSION"), style: STYLE, script: SCRIPT, script_hash };
    // Writing to a string does not fail.
    page.render().unwrap_or_default()
}

fn html_prose(text: &str) -> String {
    let escaped = |text: &str| askama::filters::escape(text, askama::filters::Html).map(|text| text.to_string());
    let piece = |piece: Piece<'_>| match piece {
        // A number stays beside its unit.
        Piece::Words(words) => escaped(words).unwrap_or_default().replace(" %", "\u{a0}%"),
        Piece::Code(text) => code(text),
    };
    pieces(&sizeleak_text::escaped(text)).map(piece).collect()
}

/// Code as HTML, whose words are not broken at hyphens.
fn code(text: &str) -> String {
    let word =
        |word: &str| askama::filters::escape(word, askama::filters::Html).map(|word| format!("<span>{word}</span>"));
    let words: Vec<String> = text.split(' ').filter_map(|text| word(text).ok()).collect();
    format!("<code>{}</code>", words.join(" "))
}

impl Figure {
    fn page_note(&self) -> String {
        let reading = self.drawn.as_ref().map_or("", |drawn| drawn.reading);
        [reading, &self.note].join(" ").trim().to_owned()
    }

    /// Its chart, to stand in the page: as HTML has it, without the name of its language.
    fn picture(&self) -> Option<String> {
        let chart = self.chart().filter(|_| !self.rows.is_empty())?;
        // The page has its title above it.
        let (heading, about) = (Some(String::new()), "The table below has its figures.".to_owned());
        let svg = Chart { heading, about, ..chart }.svg().ok()?;
        Some(svg.replace(" xmlns=\"http://www.w3.org/2000/svg\"", ""))
    }
}

impl Value {
    /// Of the bar of a share, in percent.
    fn width(&self) -> String {
        format!("{:.1}", 100.0 * self.number().unwrap_or(0.0).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{ChartKind, Section, Verdict};

    #[test]
    fn how_a_drawing_is_read_stands_only_where_it_is_drawn() {
        let figure = Figure::new("sizes-seen", "bytes | commands", [[Value::Count(7.0), Value::Count(9.0)]]);
        let figure =
            figure.titled("Sizes", "In bytes.").drawn(ChartKind::Spectrum, &[0, 1]).read_by("A bar is a size.");
        let verdict = Verdict { sentence: String::new(), meaning: String::new() };
        let sections = vec![Section::new("seen", Vec::new(), vec![figure])];
        let report = Report { verdict, tiles: Vec::new(), fix: String::new(), sections };
        let (page, text) = (crate::html(report.clone()), crate::markdown(report));
        assert!(page.contains("<svg") && page.contains("<p>A bar is a size. In bytes.</p>"), "{page}");
        assert!(text.contains("\nIn bytes.\n") && !text.contains("A bar"), "{text}");
    }

    #[test]
    fn text_between_two_backticks_is_code() {
        use Piece::{Code, Words};
        let all = |text| pieces(text).collect::<Vec<_>>();
        assert_eq!(
            all("write `-o x`, then `y`"),
            [Words("write "), Code("-o x"), Words(", then "), Code("y"), Words("")]
        );
        assert_eq!((all("a ` b"), all("")), (vec![Words("a ` b")], vec![Words("")]));
    }
}
