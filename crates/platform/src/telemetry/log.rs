//! Messages on stderr: `tracing` events as lines for people, each with its speaker, message and fields, or as JSON. They
//! share stderr with a progress bar, and with errors of a command line, which quote what was typed.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, process};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Error, ValueEnum};
use sizeleak_frame::{FlowId, Notice, Summary};
use sizeleak_text::{escaped, escaped_json, escaped_lines, needs_escape, utc};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber, enabled, error, info};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{fmt, registry};

use crate::telemetry::LatencyTable;
use crate::telemetry::latency::quantiles_ns;

/// The heading of flags for messages on stderr, in the help of all programs.
pub const MESSAGES: &str = "Messages";

/// The target of messages that are printed unless only errors are.
const SAID: &str = "sizeleak::said";

/// The target of what programs of others say, which is printed at any verbosity: it may be why they fail.
const REPEATED: &str = "sizeleak::repeated";

const TABLE: &str = "sizeleak::table";

/// The flags for the amount and format of messages.
#[derive(Debug, Clone, Default, Args)]
pub struct LogFlags {
    /// Print every notice on stderr, not just their number
    ///
    /// Also what the stages do; -vv: also their options, -vvv: everything.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = MESSAGES)]
    verbose: u8,

    /// Print nothing but errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = MESSAGES)]
    quiet: bool,

    /// The format of messages on stderr: text, or json with one object a line [default: text]
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        hide_short_help = true,
        help_heading = MESSAGES
    )]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people, in colour on a terminal unless `NO_COLOR` is set
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

impl LogFlags {
    /// Prints the messages of this program to stderr from now on. Only the first call has an effect.
    pub fn install(&self, program: &'static str) -> Screen {
        let screen = Screen::default();
        let level = match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::ERROR,
            (false, 0) => LevelFilter::WARN,
            (false, 1) => LevelFilter::INFO,
            (false, 2) => LevelFilter::DEBUG,
            (false, _) => LevelFilter::TRACE,
        };
        let said = if self.quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
        let targets = Targets::new().with_default(level).with_targets([
            (SAID, said),
            (BARE, said),
            (REPEATED, LevelFilter::INFO),
            (TABLE, if self.log_format == LogFormat::Text { said } else { LevelFilter::OFF }),
        ]);
        let writer = screen.clone();
        let lines = match self.log_format {
            LogFormat::Text => {
                let has_colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
                let text = LineFormat { program, has_colours };
                let lines = fmt::layer().with_writer(move || writer.clone());
                lines.event_format(text).with_filter(targets).boxed()
            }
            LogFormat::Json => {
                let json = fmt::format().json().flatten_event(true).with_current_span(false).with_span_list(false);
                let lines = fmt::layer().with_writer(move || JsonScreen(writer.clone()));
                lines.event_format(json).fmt_fields(fmt::format::JsonFields::new()).with_filter(targets).boxed()
            }
        };
        let _before = tracing::subscriber::set_global_default(registry().with(lines));
        screen
    }
}

pub fn is_quiet() -> bool {
    !enabled!(target: SAID, Level::INFO)
}

pub fn is_verbose() -> bool {
    enabled!(target: NOTICE, Level::INFO)
}

/// Whether more than errors is printed, as lines for people.
pub fn is_for_people() -> bool {
    enabled!(target: TABLE, Level::INFO)
}

/// Prints a message for the user unless only errors are printed, after the speaker's name.
pub fn say(speaker: &str, sentence: &str) {
    info!(target: SAID, stage = speaker, "{sentence}");
}

/// Prints a line of another program, at any verbosity, after its name.
pub fn repeat(speaker: &str, line: &str) {
    info!(target: REPEATED, stage = speaker, "{line}");
}

/// Prints a text of several lines as it is, unless only errors are printed.
pub fn show(text: &str) {
    info!(target: BARE, "{text}");
}

pub fn complain(speaker: &str, sentence: &str) {
    error!(target: SAID, stage = speaker, "{sentence}");
}

pub fn notice(notice: &Notice) {
    let Notice { time_ns, stage, flow, what, bytes, detail } = notice;
    let (stage, what, detail) = (&**stage, &**what, detail.as_deref());
    let flow = flow.map(|flow| FlowId(flow).to_string());
    info!(target: NOTICE, stage, what, flow, time_ns, bytes, detail, "{}", describe(notice));
}

/// Prints the latencies of the stages: a table for people, one event per stage for programs.
pub fn say_latency(speaker: &str, summary: &Summary) {
    if is_for_people() {
        return show(&LatencyTable(summary).to_string());
    }
    for row in &summary.stages {
        let [service_p50_ns, service_p99_ns, service_max_ns] = quantiles_ns(&row.latency);
        let [queue_p50_ns, queue_p99_ns, queue_max_ns] = quantiles_ns(&row.queue);
        info!(
            target: SAID,
            speaker,
            stage = row.stage,
            frames_in = row.frames_in,
            frames_out = row.frames_out,
            service_p50_ns,
            service_p99_ns,
            service_max_ns,
            queue_p50_ns,
            queue_p99_ns,
            queue_max_ns,
            "latency"
        );
    }
}

fn describe(notice: &Notice) -> String {
    let time = notice.time_ns.map_or_else(String::new, |time_ns| format!(" at {}", utc(time_ns)));
    let flow = notice.flow.map_or_else(String::new, |flow| format!(", flow {}", FlowId(flow)));
    let bytes = notice.bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"));
    let detail = notice.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
    format!("{}{time}{flow}{bytes}{detail}", notice.what)
}

/// The target of notices, whose message already holds their fields.
const NOTICE: &str = "sizeleak::notice";

const BARE: &str = "sizeleak::bare";

/// Formats lines like `capture: has read file=monday.pcap bytes=123`.
#[derive(Debug, Clone, Copy)]
struct LineFormat {
    program: &'static str,
    has_colours: bool,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> std::fmt::Result {
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

/// Prints a usage error, or the help or version that was asked for, and ends the program; with 1 if that cannot be written.
pub fn exit_with_usage(program: &str, error: Error) -> ! {
    let code = error.exit_code();
    if env::args_os().any(|argument| argument.to_string_lossy().contains(needs_escape)) {
        // There is nobody to report a failure to.
        let _written = io::stderr().write_all(safe_text(error).as_bytes());
        process::exit(code);
    }
    let written = match error.kind() {
        ErrorKind::DisplayHelp => anstream::stdout().write_all(dense(&error.render().ansi().to_string()).as_bytes()),
        _ => error.print(),
    };
    match written.and_then(|()| io::stdout().flush()) {
        Err(fault) if !error.use_stderr() && fault.kind() != io::ErrorKind::BrokenPipe => {
            _ = writeln!(io::stderr(), "{program}: the output cannot be written: {fault}");
            process::exit(1)
        }
        _ => process::exit(code),
    }
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
    pub fn draw(&self, drawing: Option<Box<dyn Drawing>>) {
        *self.drawing() = drawing;
    }

    fn drawing(&self) -> MutexGuard<'_, Option<Box<dyn Drawing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct JsonScreen(Screen);

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
