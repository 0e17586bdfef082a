//! Characters that steer a terminal or hide what a line says, shown as text, also in cells of CSV files, which spreadsheets
//! take for formulas.

use std::borrow::Cow;
use std::fmt::Write;

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
}
