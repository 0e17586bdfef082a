//! `sizeleak plot`: a timeline of the commands of a stream and their probabilities.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use sizeleak_frame::FlowId;
use sizeleak_output::TimeFormat;
use sizeleak_output::plot::{CommandFilter, TimePoint, Timeline, read, write_svg};
use sizeleak_pipeline::recording::open;
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::say;

use super::failure::Failure;
use super::output_option::OutputOption;
use super::text_style::ClockOption;

/// Draw the commands of a frame stream over time, as SVG
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak run pipeline.toml --format frames | sizeleak plot -o timeline.svg\n  \
    sizeleak plot saved.ndjson --time local -o timeline.svg\n  \
    sizeleak plot saved.frames --from 2026-01-06T08:30 --until 2026-01-07 --gateway 192.168.1.20 -o morning.svg\n\n\
    Each action has a lane, and each command a bar in the lanes of its most probable actions: the higher, the more \
    actions, the darker, the more probable. The tooltip of a bar names the actions.")]
pub(crate) struct Arguments {
    /// Frames or JSON lines, as `sizeleak run --format frames` or `ndjson` writes them; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    clock: ClockOption,

    #[command(flatten)]
    filter: FilterOptions,

    /// Draw only this many commands, the first ones
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "10000",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    limit: u32,
}

/// Which commands to draw; by default all.
#[derive(Debug, Args)]
struct FilterOptions {
    /// Only commands of this time or later: RFC 3339, or a date (with a time) by the clock of `--time`
    #[arg(long, value_name = "TIME")]
    from: Option<TimePoint>,

    /// Only commands before this time
    #[arg(long, value_name = "TIME")]
    until: Option<TimePoint>,

    /// Only commands to these gateways; can be repeated
    #[arg(long, value_name = "IP", num_args = 1.., value_delimiter = ',')]
    gateway: Vec<IpAddr>,

    /// Only commands of these flows, as JSON and CSV name them; can be repeated
    #[arg(long, value_name = "FLOW", num_args = 1.., value_delimiter = ',')]
    flow: Vec<FlowId>,
}

impl FilterOptions {
    fn filter(&self, times: &TimeFormat) -> Result<CommandFilter, Failure> {
        let nanoseconds = |time: TimePoint| {
            let out_of_range = || Failure::usage(anyhow!("times of a capture are between the years 1678 and 2262"));
            time.nanoseconds(times).ok_or_else(out_of_range)
        };
        let from_ns = self.from.map(nanoseconds).transpose()?;
        let until_ns = self.until.map(nanoseconds).transpose()?;
        if from_ns.zip(until_ns).is_some_and(|(from, until)| from >= until) {
            return Err(Failure::usage(anyhow!("`--from` is not before `--until`: nothing would be drawn")));
        }
        let flows = self.flow.iter().map(|flow| flow.0).collect();
        Ok(CommandFilter { from_ns, until_ns, gateways: self.gateway.clone(), flows })
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let times = arguments.clock.times()?;
    let mut timeline = Timeline::new(arguments.limit as usize, arguments.filter.filter(&times)?);
    let mut files = RunFiles::new();
    files.reads("the stream", arguments.file.as_deref().unwrap_or(Path::new("-")));
    arguments.output.add_to(&mut files);
    files.check()?;
    let (input, name) = open(arguments.file.as_deref())?;
    let read = read(input, &mut timeline);
    report_omissions(&timeline);
    // Commands before the damage are drawn.
    let mut picture = Vec::new();
    write_svg(&mut picture, &timeline, &times)?;
    arguments.output.write(&picture)?;
    read.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let code = if error.is_cut() { 3 } else { 1 };
        Failure::with_code(code, anyhow!("{name}: {error}"))
    })
}

/// Reports commands that the picture does not show.
fn report_omissions(timeline: &Timeline) {
    let (drawn, accepted, rejected) = (timeline.drawn(), timeline.accepted(), timeline.rejected());
    if accepted == 0 && rejected > 0 {
        say("sizeleak", &format!("none of {rejected} commands has the times, gateways and flows to draw"));
    } else if accepted == 0 {
        say("sizeleak", "there is no identification to draw: the decomposer and the pruner make them");
    } else if drawn < accepted {
        say("sizeleak", &format!("the first {drawn} of {accepted} commands are drawn (--limit sets how many)"));
    }
}
