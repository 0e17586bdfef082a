//! Aligned text tables, without lines.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_text::{escaped, shortened, width};

/// A missing value.
pub(super) const NONE: &str = "–";

/// Wider cells are cut: a table of them could not be read.
const MAX_COLUMNS: usize = 120;

/// A name from outside as it is shown in a table: on one line, and not too wide.
pub(super) fn name_cell(name: &str) -> Cow<'_, str> {
    match escaped(name) {
        Cow::Borrowed(name) => shortened(name, MAX_COLUMNS),
        Cow::Owned(name) => shortened(&name, MAX_COLUMNS).into_owned().into(),
    }
}

/// A table whose first column is aligned to the left and whose other columns are aligned to the right.
pub(super) fn numbers<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    table(header, rows, CellAlignment::Right)
}

/// A table whose columns are aligned to the left.
pub(super) fn words<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    table(header, rows, CellAlignment::Left)
}

fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    alignment: CellAlignment,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let rows = rows.into_iter().map(|row| row.map(|cell| name_cell(&cell).into_owned()));
    table.set_header(header.map(str::to_owned)).add_rows(rows);
    for (column, at) in table.column_iter_mut().zip(0..) {
        column.set_padding((0, 2));
        if at > 0 {
            column.set_cell_alignment(alignment);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A text broken into lines of at most so many columns at its spaces; all but the first are indented. A word that is
/// longer keeps a line for itself.
pub(super) fn paragraph(text: &str, indent: usize, columns: usize) -> String {
    let blank = text.len() - text.trim_start().len();
    let mut lines = vec![" ".repeat(blank)];
    let mut is_begun = false;
    for word in text.split_whitespace() {
        let is_full = lines.last().is_some_and(|line| width(line) + 1 + width(word) > columns);
        if is_begun && is_full {
            lines.push(" ".repeat(indent));
            is_begun = false;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if is_begun { " " } else { "" });
            line.push_str(word);
        }
        is_begun = true;
    }
    lines.join("\n") + "\n"
}

/// A share in percent. Only 1 is shown as 100 %.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let shown = if share < 1.0 { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

/// A share in percent with its interval in whole percents, which is not cut.
pub(super) fn percent_within(share: f64, Interval { low, high }: Interval) -> String {
    format!("{} ({:.0}–{:.0})", percent(share), (100.0 * low).floor(), (100.0 * high).ceil())
}

/// A part of a whole in percent, with its interval.
pub(super) fn percent_of_within(part: u64, whole: u64, interval: Interval) -> String {
    if whole == 0 { NONE.to_owned() } else { percent_within(part as f64 / whole as f64, interval) }
}

/// A share in percent with its interval, if there is one.
pub(super) fn optional_percent_within(share: Option<f64>, interval: Interval) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| percent_within(share, interval))
}

/// A figure with this many decimals, if there is one.
pub(super) fn optional_decimals(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| NONE.to_owned(), |figure| format!("{figure:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_is_never_100_percent() {
        assert_eq!([1.0, 0.9999, 0.9123, 0.0].map(percent), ["100.0 %", "99.9 %", "91.2 %", "0.0 %"]);
        let interval = Interval { low: 0.0615, high: 0.7923 };
        assert_eq!(percent_of_within(1, 3, interval), "33.3 % (6–80)");
        assert_eq!(
            (percent_of_within(0, 0, interval), optional_percent_within(None, interval)),
            (NONE.into(), NONE.into())
        );
    }

    #[test]
    fn very_long_and_hostile_names_are_cut_and_shown_as_text() {
        let rows = ["x".repeat(100_000), "a\nb\u{1b}[2J".to_owned()].map(|name| [name, "7".to_owned()]);
        let table = words(["action", "count"], rows);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!((lines.len(), lines[1].chars().count()), (3, MAX_COLUMNS + 3));
        assert!(lines[1].contains("x…  7") && lines[2].starts_with(r"a\nb\u{1b}[2J  "), "{table}");
    }

    #[test]
    fn paragraphs_are_broken_at_spaces() {
        let text = paragraph("  the quick brown fox jumps over a-very-long-hyphenated-word twice", 4, 20);
        let expected = ["  the quick brown", "    fox jumps over", "    a-very-long-hyphenated-word", "    twice"];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let rows = [["on", "7"], ["toggle", "100"]].map(|row| row.map(str::to_owned));
        assert_eq!(numbers(["action", "count"], rows), "action  count\non          7\ntoggle    100\n");
    }
}
