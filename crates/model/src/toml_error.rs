//! Errors of TOML files in one line.

/// Describes what is wrong with a TOML text, with the line if known.
pub(crate) fn describe(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    line.unwrap_or_default() + error.message()
}
