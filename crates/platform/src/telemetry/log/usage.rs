//! Errors of a command line, which quote what was typed.

use std::env;
use std::io::{self, Write};
use std::process;

use clap::Error;
use clap::error::{ContextKind, ContextValue};
use sizeleak_text::{escaped, escaped_lines, needs_escape};

/// Prints a usage error, or the help or version that was asked for, and ends the program.
pub fn exit_with_usage(error: Error) -> ! {
    let code = error.exit_code();
    if env::args_os().any(|argument| argument.to_string_lossy().contains(needs_escape)) {
        // There is nobody to report a failure to.
        let _written = io::stderr().write_all(safe_text(error).as_bytes());
        process::exit(code);
    }
    error.exit()
}

/// The text of an error without colours, with every quoted argument on one line.
fn safe_text(mut error: Error) -> String {
    let quoted: Vec<_> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    for (kind, value) in quoted {
        let safe = match value {
            ContextValue::String(text) => ContextValue::String(escaped(&text).into_owned()),
            ContextValue::Strings(texts) => {
                ContextValue::Strings(texts.iter().map(|text| escaped(text).into_owned()).collect())
            }
            // Tips quote the argument too.
            ContextValue::StyledStr(_) | ContextValue::StyledStrs(_) if kind != ContextKind::Usage => {
                ContextValue::None
            }
            other => other,
        };
        error.insert(kind, safe);
    }
    escaped_lines(&error.render().to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, value_parser};

    use super::*;

    #[test]
    fn quoted_arguments_are_escaped() {
        let command = Command::new("mine").arg(Arg::new("count").long("count").value_parser(value_parser!(u8)));
        for typed in ["--count=\u{1b}[31m\u{202e}7\nerror: forged", "--\u{9b}31m\u{1b}[2J\nerror: forged", "\u{1b}c\r"]
        {
            let error = command.clone().try_get_matches_from(["mine", typed]).unwrap_err();
            let text = safe_text(error);
            assert!(!text.contains(|shown| needs_escape(shown) && shown != '\n'), "{text:?}");
            assert_eq!(text.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{text:?}");
            assert!(text.contains(r"\u{1b}"), "{text:?}");
        }
    }
}
