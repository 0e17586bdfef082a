//! A report as blocks: laid out as text for people, or as Markdown.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use sizeleak_report::document::{Figure, Value};
use sizeleak_report::forms::{markdown_prose, markdown_table};
use sizeleak_text::{escaped, escaped_lines, shortened, width, wrapped};
use terminal_size::{Width, terminal_size_of};

/// Columns of text that is not written to a terminal.
pub(super) const COLUMNS: usize = 80;

/// Wider cells are cut: a table of them could not be read.
const MAX_CELL: usize = 120;

const GAP: u16 = 2;

/// Wider cells are words.
const MAX_NUMBER: usize = 20;

pub(super) type Document = Vec<Block>;

#[derive(Debug, Clone)]
pub(super) enum Block {
    /// A line as it is, such as a bar or a command line to copy.
    Line(String),
    Paragraph {
        text: String,
        indent: usize,
    },
    Table {
        header: Vec<String>,
        rows: Vec<Vec<String>>,
        indent: usize,
    },
}

pub(super) fn blank() -> Document {
    line("")
}

pub(super) fn line(text: impl Into<String>) -> Document {
    vec![Block::Line(text.into())]
}

/// A text that is broken into lines at its spaces; all but the first are indented. A word that is longer than a line keeps
/// one for itself.
pub(super) fn paragraph(text: impl Into<String>, indent: usize) -> Document {
    vec![Block::Paragraph { text: text.into(), indent }]
}

/// A table whose first column is aligned to the left and whose other columns are aligned to the right.
pub(super) fn numbers<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Document {
    let rows = rows.into_iter().map(|row| row.map(|cell| name_cell(&cell).into_owned()).to_vec());
    vec![Block::Table { header: header.map(str::to_owned).to_vec(), rows: rows.collect(), indent: 0 }]
}

pub(super) fn figure(figure: &Figure) -> Document {
    let cell = |value: &Value| shortened(&value.shown(), MAX_CELL).into_owned();
    let rows = figure.rows.iter().map(|row| row.iter().map(cell).collect());
    vec![Block::Table { header: figure.columns.clone(), rows: rows.collect(), indent: 0 }]
}

/// A name from outside as it is shown in a table: on one line, and not too wide.
pub(super) fn name_cell(name: &str) -> Cow<'_, str> {
    match escaped(name) {
        Cow::Borrowed(name) => shortened(name, MAX_CELL),
        Cow::Owned(name) => shortened(&name, MAX_CELL).into_owned().into(),
    }
}

pub(super) fn indented(document: Document, by: usize) -> Document {
    let further = |block| match block {
        Block::Line(text) if text.is_empty() => Block::Line(text),
        Block::Line(text) => Block::Line(format!("{:by$}{text}", "")),
        Block::Paragraph { text, indent } => {
            Block::Paragraph { text: format!("{:by$}{text}", ""), indent: indent + by }
        }
        Block::Table { header, rows, indent } => Block::Table { header, rows, indent: indent + by },
    };
    document.into_iter().map(further).collect()
}

/// What is said of entries that are not shown; nothing if all are.
pub(super) fn rest(all: usize, shown: usize, words: impl FnOnce(usize) -> String) -> Document {
    match all.checked_sub(shown) {
        Some(more @ 1..) => line(words(more)),
        _ => Document::new(),
    }
}

pub(super) fn spaced(parts: impl IntoIterator<Item = Document>) -> Document {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(&blank()[..])
}

/// A report as text of so many columns. Lines and words that are wider stay as they are.
pub(super) fn as_text(document: &[Block], columns: usize) -> String {
    let lines = document.iter().map(|block| match block {
        Block::Line(line) => line.clone() + "\n",
        Block::Paragraph { text, indent } => broken(text, *indent, columns),
        Block::Table { header, rows, indent } => {
            let lines = aligned(header, rows, columns.saturating_sub(*indent));
            lines.into_iter().map(|line| " ".repeat(*indent) + &line + "\n").collect()
        }
    });
    lines.collect()
}

/// A table as lines: where its names would be broken beside all of its numbers, it is several tables of some of these.
fn aligned(header: &[String], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let all: Vec<usize> = (0..header.len()).collect();
    let lines = table_of(&all, header, rows, columns);
    let is_whole = |row: &Vec<String>| {
        let name = row.first().map_or("", |name| name.trim_end());
        lines.iter().any(|line| line.starts_with(name))
    };
    if rows.iter().all(is_whole) {
        return lines;
    }
    let parts = parts_within(header, rows, columns).unwrap_or_else(|| vec![all]);
    let parts: Vec<_> = parts.iter().map(|shown| table_of(shown, header, rows, columns)).collect();
    parts.join(&String::new())
}

/// Some of the columns of a table as lines.
fn table_of(shown: &[usize], header: &[String], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let picked = |row: &[String]| shown.iter().filter_map(|at| row.get(*at)).cloned().collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(columns).unwrap_or(u16::MAX).saturating_add(GAP));
    table.set_header(picked(header)).add_rows(rows.iter().map(|row| picked(row)));
    for (column, at) in table.column_iter_mut().zip(0..) {
        column.set_padding((0, GAP));
        if at > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Which columns stand beside each other if each line has the names and as many numbers as fit; `None` for columns of
/// words, which may be broken, and for names beside which no number fits.
fn parts_within(header: &[String], rows: &[Vec<String>], columns: usize) -> Option<Vec<Vec<usize>>> {
    let gap = usize::from(GAP);
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..).zip(header).map(|(at, name)| widest(at).max(width(name)) + gap).collect();
    let (limit, (names, numbers)) = (columns + gap, widths.split_first()?);
    if (1..).zip(numbers).any(|(at, number)| widest(at) > MAX_NUMBER || names + number > limit) {
        return None;
    }
    let (mut parts, mut line) = (vec![vec![0]], *names);
    for (at, number) in (1..).zip(numbers) {
        if line + number > limit {
            parts.push(vec![0]);
            line = *names;
        }
        line += number;
        parts.last_mut()?.push(at);
    }
    Some(parts)
}

fn broken(text: &str, indent: usize, columns: usize) -> String {
    // It may be aligned with the lines around it.
    if width(text) <= columns && !text.contains('\n') {
        return format!("{text}\n");
    }
    let [first, further] = [text.len() - text.trim_start().len(), indent].map(|blank| " ".repeat(blank));
    wrapped(text, columns, [&first, &further]).join("\n") + "\n"
}

/// A report as Markdown. Lines beside each other stay so, in a block of code.
pub(super) fn as_markdown(document: &[Block]) -> String {
    let mut parts = Vec::new();
    for blocks in document.chunk_by(|one, other| is_line(one) && is_line(other)) {
        match blocks {
            [Block::Paragraph { text, .. }] => parts.push(markdown_prose(&on_one_line(text)) + "\n"),
            [Block::Line(text)] if !text.starts_with(' ') => parts.push(markdown_prose(text) + "\n"),
            [Block::Table { header, rows, .. }] => {
                let are_numbers: Vec<bool> = (0..header.len()).map(|at| at > 0).collect();
                parts.push(markdown_table(header, &are_numbers, rows.iter().cloned()));
            }
            lines => parts.push(markdown_code(&as_text(lines, usize::MAX))),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n")
}

fn is_line(block: &Block) -> bool {
    matches!(block, Block::Line(text) if !text.is_empty())
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A block of code, whose fence is longer than any run of backticks in it.
fn markdown_code(lines: &str) -> String {
    let longest = lines.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}{fence}\n", escaped_lines(lines))
}

pub(super) fn stdout_columns() -> usize {
    columns(&io::stdout())
}

pub(super) fn stderr_columns() -> usize {
    columns(&io::stderr())
}

fn columns(stream: &(impl IsTerminal + AsFd)) -> usize {
    let terminal = stream.is_terminal().then(|| terminal_size_of(stream)).flatten();
    terminal.map_or(COLUMNS, |(Width(columns), _)| usize::from(columns).max(MIN_COLUMNS))
}

/// Narrower terminals break lines themselves: words of a table would be cut.
const MIN_COLUMNS: usize = 40;

pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(document: &[Block]) -> String {
        as_text(document, COLUMNS)
    }

    #[test]
    fn very_long_and_hostile_names_are_cut_and_shown_as_text() {
        let rows = ["x".repeat(100_000), "a\nb\u{1b}[2J".to_owned()].map(|name| [name, "7".to_owned()]);
        let table = as_text(&numbers(["action", "count"], rows), 200);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!((lines.len(), lines[1].chars().count()), (3, MAX_CELL + "  count".len()));
        assert!(lines[1].contains("x…      7") && lines[2].starts_with(r"a\nb\u{1b}[2J  "), "{table}");
    }

    #[test]
    fn paragraphs_are_broken_at_spaces() {
        let text = "  the quick brown fox jumps over a-very-long-hyphenated-word twice";
        let expected = ["  the quick brown", "    fox jumps over", "    a-very-long-hyphenated-word", "    twice"];
        assert_eq!(as_text(&paragraph(text, 4), 20).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let rows = [["on", "7"], ["toggle", "100"]].map(|row| row.map(str::to_owned));
        assert_eq!(text(&numbers(["action", "count"], rows)), "action  count\non          7\ntoggle    100\n");
    }

    #[test]
    fn tables_are_no_wider_than_the_text() {
        let cells = ["a policy with a very long name", "12.5 %", "of all commands that there are", "named by somebody"];
        let table = numbers(["policy", "more", "named", "who"], [cells.map(str::to_owned)]);
        for columns in [40, 60, 80, 120] {
            let shown = as_text(&indented(table.clone(), 2), columns);
            assert!(shown.lines().all(|line| width(line) <= columns), "{columns}:\n{shown}");
            let found: String = shown.split_whitespace().collect();
            assert_eq!(found.len(), "policymorenamedwho".len() + cells.concat().replace(' ', "").len(), "{shown}");
        }
    }

    #[test]
    fn names_beside_too_many_numbers_stand_in_several_tables_and_are_not_broken() {
        let rows = ["delay of 60 s, 30 % dummies, one reply", "none"].map(|name| {
            let numbers = ["17.8 %", "≤ 62.5 %", "45.1 %", "+0.0012"];
            [name, numbers[0], numbers[1], numbers[2], numbers[3]].map(str::to_owned)
        });
        let table = numbers(["of a message", "command", "by replies", "number", "MB a day"], rows);
        let expected = "of a message                            command  by replies\n\
                        delay of 60 s, 30 % dummies, one reply   17.8 %    ≤ 62.5 %\n\
                        none                                     17.8 %    ≤ 62.5 %\n\n\
                        of a message                            number  MB a day\n\
                        delay of 60 s, 30 % dummies, one reply  45.1 %   +0.0012\n\
                        none                                    45.1 %   +0.0012\n";
        assert_eq!(as_text(&table, 60), expected);
        assert_eq!(as_text(&table, 100).lines().count(), 3, "one table where there is room");
        assert_eq!(as_text(&numbers(["a", "b"], []), 60), "a  b\n");
        let long = numbers(["name", "n"], [["x".repeat(100), "7".to_owned()]]);
        assert!(as_text(&long, 60).lines().all(|line| width(line) <= 60), "a name that is too long for any is broken");
    }

    #[test]
    fn markdown_has_tables_and_keeps_lines() {
        let rows = [["  on | off", "7"].map(str::to_owned)];
        let document =
            [paragraph("  what is\nsaid", 2), blank(), numbers(["action", "count"], rows), line("  ##"), line("  #")]
                .concat();
        let expected = "what is said\n\n| action | count |\n| --- | ---: |\n| &emsp;on \\| off | 7 |\n\n\
                        ```text\n  ##\n  #\n```\n";
        assert_eq!(as_markdown(&document), expected);
    }

    #[test]
    fn markdown_escapes_names() {
        let rows = [["<script>|*x*", "7"].map(str::to_owned)];
        let document = [
            paragraph("<img src=x> is named by `<b>`", 2),
            line("_all_ of [it](http://x)"),
            numbers(["<i>", "n"], rows),
            line("  ```"),
            line("  <b>"),
        ];
        let expected = "\\<img src=x\\> is named by `<b>`\n\n\\_all\\_ of \\[it\\](http://x)\n\n\
                        | \\<i\\> | n |\n| --- | ---: |\n| \\<script\\>\\|\\*x\\* | 7 |\n\n\
                        ````text\n  ```\n  <b>\n````\n";
        assert_eq!(as_markdown(&document.concat()), expected);
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        let shown = ["a/b-c.toml", "", "two words", "it's"].map(quoted);
        assert_eq!(shown, ["a/b-c.toml", "''", "'two words'", r"'it'\''s'"]);
        let shown = ["home.pcap", "my home.pcap", "it's $HOME.pcap"].map(quoted);
        assert_eq!(shown, ["home.pcap", "'my home.pcap'", r"'it'\''s $HOME.pcap'"]);
    }
}
