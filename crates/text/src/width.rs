//! Text in columns: how wide it is on a terminal, and how it is cut to fit.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
/// word that is longer than a line keeps one for itself.
pub fn wrapped(text: &str, columns: usize, [first, further]: [&str; 2]) -> Vec<String> {
    let (mut lines, mut line, mut is_begun) = (Vec::new(), first.to_owned(), false);
    for word in text.split_whitespace() {
        if is_begun && line.width() + 1 + word.width() > columns {
            lines.push(std::mem::replace(&mut line, further.to_owned()));
            is_begun = false;
        }
        line.extend([if is_begun { " " } else { "" }, word]);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
}
