//! An event as a line of text: speaker, message and fields.

use std::fmt::{Debug, Result};

use anstyle::{AnsiColor, Style};
use sizeleak_text::{escaped, escaped_lines};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The target of notices, whose message already holds their fields.
pub(super) const NOTICE: &str = "sizeleak::notice";

/// The target of text that is printed without a speaker.
pub(super) const BARE: &str = "sizeleak::bare";

/// Formats lines like `capture: has read file=monday.pcap bytes=123`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineFormat {
    /// The speaker of events that name no stage.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_quoted_line_begins_another_line() {
        assert_eq!(sentence("p.toml, line 7: no\n  7 | gap = \t1"), "p.toml, line 7: no\n  7 | gap = \\t1");
        assert_eq!(sentence("a\nsizeleak: forged\n  b\u{1b}[2J"), r"a\nsizeleak: forged\n  b\u{1b}[2J");
    }
}
