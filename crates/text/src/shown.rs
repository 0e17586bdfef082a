//! Text as people see it. Characters that steer a terminal or hide what a line says, shown as text, also in cells of
//! CSV files, which spreadsheets take for formulas; columns: how wide text is on a terminal, and how it is cut to fit;
//! numbers in sentences.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Whether a character is not shown as it is: the control characters C0, DEL and C1; the controls of bidirectional text;
/// the separators of lines and paragraphs.
pub fn needs_escape(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text on one line, safe to show on a terminal or to log: `\n`, `\t`, `\r`, or `\u{1b}` for what
/// [`needs_escape`].
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_unless(text, |_| false)
}

/// The same for a text of several lines, whose line feeds stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_unless(text, |character| character == '\n')
}

/// The same JSON text without characters that would steer a terminal: inside strings they become `\u009b`. Line feeds
/// and tabs, which in JSON stand only between values, stay.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let stays = |character| matches!(character, '\n' | '\t' | '\r');
    // All of them are in the basic plane: four digits are enough.
    replaced(json, stays, |character, text| write!(text, "\\u{:04x}", u32::from(character)))
}

fn escaped_unless(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, stays, |character, text| write!(text, "{}", character.escape_default()))
}

fn replaced(
    text: &str,
    stays: impl Fn(char) -> bool,
    replace: impl Fn(char, &mut String) -> std::fmt::Result,
) -> Cow<'_, str> {
    let is_replaced = |character: char| needs_escape(character) && !stays(character);
    let Some(first) = text.find(is_replaced) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(before);
    for character in rest.chars() {
        if is_replaced(character) {
            let _never_fails = replace(character, &mut safe);
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// A text cell that no spreadsheet evaluates and no terminal obeys: escaped, and with an apostrophe before `=`, `+`,
/// `-`, `@` or a tab or line break at its beginning. Not for numbers, which may begin with `-`.
pub fn cell(text: &str) -> Cow<'_, str> {
    let shown = escaped(text);
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { Cow::Owned(format!("'{shown}")) } else { shown }
}

/// A range in words: `37 to 52`, or one number where both ends are the same.
pub fn range_in_words<T: Display + PartialEq>([least, most]: [T; 2]) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// The columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The most bytes of a column: a character has few that take no column.
const MAX_BYTES: usize = 32;

/// The text, or as much of it as fits with `…` at its end, in at most this many columns.
pub fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    // A byte takes a column at most: most texts need no closer look.
    let most_bytes = MAX_BYTES * columns;
    if text.len() <= columns || text.len() <= most_bytes && text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let mut taken = 0;
    let end = text.char_indices().find(|(at, character)| {
        // A control character takes one, as in the width of a text.
        taken += character.width().unwrap_or(1);
        taken > room || *at >= most_bytes
    });
    let kept = end.and_then(|(end, _)| text.get(..end)).unwrap_or(text);
    Cow::Owned(format!("{kept}…"))
}

/// The text in exactly this many columns: shortened, or with spaces at its end.
pub fn fitted(text: &str, columns: usize) -> String {
    let mut fitted = shortened(text, columns).into_owned();
    let spaces = columns.saturating_sub(fitted.width());
    fitted.extend(std::iter::repeat_n(' ', spaces));
    fitted
}

/// A text in lines of at most so many columns, broken at its spaces: what the first line begins with, and the others. A
/// word that is longer than a line keeps one for itself. A percent sign stays with its number, and words as far apart as
/// they are.
pub fn wrapped(text: &str, columns: usize, [first, further]: [&str; 2]) -> Vec<String> {
    let (mut lines, mut line, mut is_begun) = (Vec::new(), first.to_owned(), false);
    let mut words = text.trim().split(char::is_whitespace).peekable();
    let mut further_apart = String::new();
    while let Some(word) = words.next() {
        if word.is_empty() {
            further_apart.push(' ');
            continue;
        }
        let percent = words.next_if(|next| next.starts_with('%'));
        let word = percent.map_or(Cow::Borrowed(word), |sign| Cow::Owned(format!("{word} {sign}")));
        if is_begun && line.width() + 1 + further_apart.len() + word.width() > columns {
            lines.push(std::mem::replace(&mut line, further.to_owned()));
            is_begun = false;
        }
        if is_begun {
            line.extend([" ", &further_apart]);
        }
        line.push_str(&word);
        further_apart.clear();
        is_begun = true;
    }
    lines.push(line);
    lines
}

/// The first few of some texts, separated by commas; the others are counted: `on, off and 3 more`.
pub fn listed(texts: impl IntoIterator<Item = String>, shown: usize) -> String {
    let mut texts = texts.into_iter();
    let first = texts.by_ref().take(shown).collect::<Vec<_>>().join(", ");
    match texts.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// A number with the word for so many: `1 label`, `7 labels`.
///
/// ```
/// use sizeleak_text::counted;
///
/// assert_eq!(counted(1, "label is", "labels are"), "1 label is");
/// assert_eq!(counted(0, "label is", "labels are"), "0 labels are");
/// ```
pub fn counted(count: impl Copy + Display + PartialEq + From<bool>, one: &str, many: &str) -> String {
    let word = if count == true.into() { one } else { many };
    format!("{count} {word}")
}

/// A share that differs from nothing or all by more is shown so; less is what sums of probabilities are off by.
const NOTHING: f64 = 1e-9;

/// A share in percent. Only 1 is shown as 100 %, and only nothing as 0 %.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if share > NOTHING && percent < 0.05 {
        return "< 0.1 %".to_owned();
    }
    let shown = if share < 1.0 - NOTHING { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

/// A probability in whole percents. No small one is shown as 0, and no great one as 1.
pub fn rough_percent(probability: f64) -> String {
    match 100.0 * probability {
        percent if percent < 1.0 => "less than 1 %".to_owned(),
        percent if percent > 99.0 && percent < 100.0 => "more than 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What may change how a terminal shows the rest of a line.
    const CONTROLS: &str = "\0\u{7}\u{8}\t\n\u{b}\r\u{1b}\u{1f}\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{61c}\u{200e}\u{200f}\
                            \u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";

    #[test]
    fn every_control_is_shown_as_text() {
        for control in CONTROLS.chars() {
            assert!(needs_escape(control), "{control:?}");
            let text = format!("a{control}b");
            assert!(escaped(&text).chars().all(|shown| (' '..='~').contains(&shown)), "{control:?}");
            assert_eq!(escaped_lines(&text) == text, control == '\n');
        }
        assert_eq!(escaped("\u{1b}[31mred\u{9b}0m\r\n\t\0"), r"\u{1b}[31mred\u{9b}0m\r\n\t\u{0}");
        for plain in ["plug, 2 × on → off … ε 灯 🏠 é", r"C:\u{1b}", "", "'quoted' \"text\""] {
            assert!(matches!(escaped(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    proptest! {
        #[test]
        fn nothing_else_changes(text in "\\PC*", controls in "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200e}\u{202e}\u{2066}]*") {
            let mixed = format!("{text}{controls}{text}");
            let shown = escaped(&mixed);
            prop_assert!(!shown.contains(needs_escape));
            prop_assert_eq!(&escaped(&shown), &shown, "escaped once is escaped");
            if !text.contains(needs_escape) {
                prop_assert!(shown.starts_with(&text) && shown.ends_with(&text));
            }
        }

        #[test]
        fn json_keeps_its_value(text in any::<String>(), controls in "[\u{7f}-\u{9f}\u{200e}\u{202e}\u{2066}]*") {
            let value = serde_json::json!({ "name": format!("{text}{controls}") });
            let json = format!("{value:#}");
            let safe = escaped_json(&json);
            prop_assert!(!safe.contains(|shown| needs_escape(shown) && shown != '\n'));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
        }
    }

    #[test]
    fn formulas_become_text() {
        for (text, shown) in [
            ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\t=1"),
            ("\r=1", "'\\r=1"),
            ("", ""),
            ("on=2 off=1", "on=2 off=1"),
            ("api.example.org", "api.example.org"),
            ("'quoted", "'quoted"),
        ] {
            assert_eq!(cell(text), shown);
        }
    }

    #[test]
    fn text_is_cut_by_its_width_on_a_terminal() {
        assert_eq!(shortened("lamp", 4), "lamp");
        assert_eq!(shortened("lamps", 4), "lam…");
        assert_eq!(shortened("灯灯灯", 6), "灯灯灯");
        assert_eq!(shortened("灯灯灯", 5), "灯灯…");
        assert_eq!(shortened("灯灯灯", 4), "灯…");
        assert_eq!((shortened("lamp", 1), shortened("lamp", 0)), ("…".into(), "".into()));
        assert_eq!(shortened(&"\0".repeat(1_000_000), 9), format!("{}…", "\0".repeat(8)));
        assert!(shortened(&"e\u{301}\u{301}".repeat(1_000_000), 9).len() < 100);
        assert!(shortened(&"\u{301}".repeat(1_000_000), 9).len() < 1_000);
        assert_eq!(fitted("灯", 4), "灯  ");
    }

    #[test]
    fn words_stay_as_far_apart_as_they_are_unless_a_line_ends_between_them() {
        let lines = |text, columns| wrapped(text, columns, ["  ", "       "]);
        assert_eq!(lines("  +10  there are few\nof them", 18), ["  +10  there are", "       few of them"]);
        assert_eq!(lines("on    7  ", 40), ["  on    7"]);
        assert_eq!(lines("on   7", 7), ["  on", "       7"]);
    }

    #[test]
    fn texts_beyond_the_first_few_are_counted() {
        let texts = |count: usize| (0..count).map(|at| at.to_string());
        assert_eq!([0, 1, 2, 3].map(|count| listed(texts(count), 2)), ["", "0", "0, 1", "0, 1 and 1 more"]);
    }

    #[test]
    fn very_long_names_fit() {
        let name = "x".repeat(100_000);
        assert_eq!(fitted(&name, 40), "x".repeat(39) + "…");
        assert_eq!(width(&fitted("x", 100_000)), 100_000);
    }

    proptest! {
        #[test]
        fn fitted_text_has_exactly_the_width(text in "\\PC*", columns in 0_usize..40) {
            prop_assert!(width(&shortened(&text, columns)) <= columns);
            prop_assert_eq!(width(&fitted(&text, columns)), columns);
        }
    }

    #[test]
    fn a_percent_sign_stays_with_its_number() {
        let lines = |text, columns| wrapped(text, columns, ["", "  "]);
        assert_eq!(lines("named in 62 % of cases", 11), ["named in", "  62 % of", "  cases"]);
        assert_eq!(
            lines("between (51–73 %; guessing: 25 %)", 14),
            ["between", "  (51–73 %;", "  guessing:", "  25 %)"]
        );
        assert_eq!(lines("% of it", 4), ["% of", "  it"]);
        assert_eq!(lines("a 95 % b", 3), ["a", "  95 %", "  b"]);
    }

    #[test]
    fn more_than_nothing_is_never_0_percent() {
        for (share, shown) in
            [(0.0004, "< 0.1 %"), (1e-8, "< 0.1 %"), (0.0, "0.0 %"), (1e-15, "0.0 %"), (0.0005, "0.1 %")]
        {
            assert_eq!(percent(share), shown, "{share}");
        }
        assert_eq!(percent(-0.0004), "-0.0 %", "a difference has its sign");
    }

    #[test]
    fn less_than_all_is_never_100_percent() {
        assert_eq!(
            [1.0, 1.0 - 1e-15, 0.9999, 0.9123, 0.0].map(percent),
            ["100.0 %", "100.0 %", "99.9 %", "91.2 %", "0.0 %"]
        );
    }
}
