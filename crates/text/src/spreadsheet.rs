//! Text in cells of CSV files, which spreadsheets take for formulas.

use std::borrow::Cow;

use crate::escape::escaped;

/// A text cell that no spreadsheet evaluates and no terminal obeys: escaped, and with an apostrophe before `=`, `+`,
/// `-`, `@` or a tab or line break at its beginning. Not for numbers, which may begin with `-`.
pub fn cell(text: &str) -> Cow<'_, str> {
    let shown = escaped(text);
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { Cow::Owned(format!("'{shown}")) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

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
