//! Lines on standard error, which they share with a progress bar: an event with its speaker, message and fields, and
//! errors of a command line, which quote what was typed.

use std::fmt::{Debug, Result};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, process};

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use sizeleak_text::{escaped, escaped_json, escaped_lines, needs_escape};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The target of notices, whose message already holds their fields.
pub(super) const NOTICE: &str = "sizeleak::notice";

pub(super) const BARE: &str = "sizeleak::bare";

/// Formats lines like `capture: has read file=monday.pcap bytes=123`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineFormat {
    pub(super) program: &'static str,
    pub(super) has_colours: bool,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> Result {
        let mut parts = Parts::default();
        event.record(&mut parts);
        if event.metadata().target() == BARE {
            return writeln!(writer, "{}", escaped_lines(&parts.message));
        }
        let level = *event.metadata().level();
        let style = if self.has_colours { style(level) } else { Style::new() };
        let speaker = if parts.stage.is_empty() { self.program } else { &parts.stage };
        write!(writer, "{style}{}:{style:#} {}", escaped(speaker), sentence(&parts.message))?;
        if event.metadata().target() != NOTICE {
            writer.write_str(&escaped(&parts.fields))?;
        }
        writeln!(writer)
    }
}

/// A message on one line, except for the line of a file that an error quotes below it.
fn sentence(message: &str) -> String {
    let mut parts = message.split("\n  ");
    let mut text = escaped(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let number = part.split(" | ").next().unwrap_or_default();
        let is_quote = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        text += if is_quote { "\n  " } else { r"\n  " };
        text += &escaped(part);
    }
    text
}

fn style(level: Level) -> Style {
    match level {
        Level::ERROR => AnsiColor::Red.on_default().bold(),
        Level::WARN => AnsiColor::Yellow.on_default(),
        Level::INFO => Style::new().bold(),
        _ => Style::new().dimmed(),
    }
}

#[derive(Debug, Default)]
struct Parts {
    stage: String,
    message: String,
    /// ` name=value` each.
    fields: String,
}

impl Parts {
    fn add(&mut self, field: &Field, value: String) {
        match field.name() {
            "stage" => self.stage = value,
            "message" => self.message = value,
            name => self.fields.extend([" ", name, "=", &value]),
        }
    }
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }
}

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

/// Standard error, written line by line. Clones share the drawing.
#[derive(Clone, Default)]
pub struct Screen(Arc<Mutex<Option<Box<dyn Drawing>>>>);

/// Something that is drawn below the lines, such as a progress bar.
pub trait Drawing: Send {
    /// Clears the drawing, calls `write`, and draws again below.
    fn suspend(&self, write: &mut dyn FnMut());
}

impl Screen {
    /// Sets or removes the drawing.
    pub fn draw(&self, drawing: Option<Box<dyn Drawing>>) {
        *self.drawing() = drawing;
    }

    fn drawing(&self) -> MutexGuard<'_, Option<Box<dyn Drawing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct JsonScreen(pub(super) Screen);

impl Write for JsonScreen {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        self.0.write_all(escaped_json(&text).as_bytes()).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Where nobody reads messages any more, the run goes on without them: an error here would end it.
        let mut write = || _ = io::stderr().write_all(line);
        match &*self.drawing() {
            Some(drawing) => drawing.suspend(&mut write),
            None => write(),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        _ = io::stderr().flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, value_parser};

    use super::*;

    #[test]
    fn only_a_quoted_line_begins_another_line() {
        assert_eq!(sentence("p.toml, line 7: no\n  7 | gap = \t1"), "p.toml, line 7: no\n  7 | gap = \\t1");
        assert_eq!(sentence("a\nsizeleak: forged\n  b\u{1b}[2J"), r"a\nsizeleak: forged\n  b\u{1b}[2J");
    }

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
