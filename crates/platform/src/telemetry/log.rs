//! Messages on stderr: `tracing` events as lines for people or as JSON.

mod text;

use std::io;

use anstream::{AutoStream, ColorChoice};
use clap::{ArgAction, Args, ValueEnum};
use sizeleak_frame::{FlowId, Notice, Summary};
use sizeleak_text::utc;
use tracing::level_filters::LevelFilter;
use tracing::{Level, enabled, error, info};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::{fmt, registry};

pub use text::{Drawing, Screen, exit_with_usage};

use text::{JsonScreen, LineFormat};

use crate::telemetry::{Latency, LatencyTable};

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
            (text::BARE, said),
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
    enabled!(target: text::NOTICE, Level::INFO)
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
    info!(target: text::BARE, "{text}");
}

pub fn complain(speaker: &str, sentence: &str) {
    error!(target: SAID, stage = speaker, "{sentence}");
}

pub fn notice(notice: &Notice) {
    let Notice { time_ns, stage, flow, what, bytes, detail } = notice;
    let (stage, what, detail) = (&**stage, &**what, detail.as_deref());
    let flow = flow.map(|flow| FlowId(flow).to_string());
    info!(target: text::NOTICE, stage, what, flow, time_ns, bytes, detail, "{}", describe(notice));
}

/// Prints the latencies of the stages: a table for people, one event per stage for programs.
pub fn say_latency(speaker: &str, summary: &Summary) {
    if is_for_people() {
        return show(&LatencyTable(summary).to_string());
    }
    for row in &summary.stages {
        let at = |histogram: &[u8], quantile| {
            let latency = Latency::from_bytes(histogram).ok().filter(|latency| !latency.histogram().is_empty());
            latency.map(|latency| latency.histogram().value_at_quantile(quantile))
        };
        info!(
            target: SAID,
            speaker,
            stage = row.stage,
            frames_in = row.frames_in,
            frames_out = row.frames_out,
            service_p50_ns = at(&row.latency, 0.5),
            service_p99_ns = at(&row.latency, 0.99),
            service_max_ns = at(&row.latency, 1.0),
            queue_p50_ns = at(&row.queue, 0.5),
            queue_p99_ns = at(&row.queue, 0.99),
            queue_max_ns = at(&row.queue, 1.0),
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
