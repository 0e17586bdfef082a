//! Errors of a command line, which quote what was typed.

use std::env;
use std::io::{self, Write};
use std::process;

use anstream::adapter::strip_str;
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use sizeleak_text::{escaped, escaped_lines, needs_escape};

/// Prints a usage error, or the help or version that was asked for, and ends the program.
pub fn exit_with_usage(error: Error) -> ! {
    let code = error.exit_code();
    if env::args_os().any(|argument| argument.to_string_lossy().contains(needs_escape)) {
        // There is nobody to report a failure to.
        let _written = io::stderr().write_all(safe_text(error).as_bytes());
        process::exit(code);
    }
    if error.kind() == ErrorKind::DisplayHelp {
        let _written = anstream::stdout().write_all(dense(&error.render().ansi().to_string()).as_bytes());
        process::exit(code);
    }
    error.exit()
}

/// A help text without the blank lines between options, which would be a third of it.
fn dense(help: &str) -> String {
    let is_option = |line: &str| line.starts_with(' ') && strip_str(line).to_string().trim_start().starts_with('-');
    let next = help.lines().skip(1).map(is_option).chain([false]);
    let kept = help.lines().zip(next).filter(|(line, is_before_option)| !(line.trim().is_empty() && *is_before_option));
    kept.flat_map(|(line, _)| [line, "\n"]).collect()
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
    fn options_of_a_long_help_follow_each_other() {
        let options =
            [Arg::new("one").long("one").help("First").long_help("First\n\nMore"), Arg::new("two").long("two")];
        let error = Command::new("mine").args(options).try_get_matches_from(["mine", "--help"]).unwrap_err();
        let help = dense(&error.render().ansi().to_string());
        let expected = "Options:\n      --one <one>\n          First\n          \n          More\n      --two <two>\n          \n  \
            -h, --help\n";
        assert!(strip_str(&help).to_string().contains(expected), "{help}");
    }

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
