//! `sizeleak plot`: a timeline of the commands and deviations of a stream, or the habits of a profile.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use sizeleak_frame::FlowId;
use sizeleak_labels::{LabelClock, LabelFile};
use sizeleak_output::plot::{CommandFilter, PictureSize, TimePoint, Timeline, TooSmall, Truth, habits_svg, svg_of};
use sizeleak_output::{TimeFormat, read_answers};
use sizeleak_pipeline::recording::open;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::{LogFlags, say};

use super::failure::Failure;
use super::help::{INPUT, OUTPUT};
use super::label_reading::{LabelClockOption, LabelReading};
use super::output_form::check_picture;
use super::output_option::OutputOption;
use super::text_style::ClockOption;
use sizeleak_text::counted;

mod profile;

/// The most commands and deviations that are drawn by default.
const LIMIT: u32 = 10_000;

/// Draw commands over time, or what a home usually does, as SVG
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak plot commands.frames -o timeline.svg\n  \
    sizeleak plot home.profile.toml -o habits.svg")]
#[command(after_long_help = "Examples:\n  \
    sizeleak run pipeline.toml --format frames | sizeleak plot -o timeline.svg\n  \
    sizeleak plot saved.ndjson --time local -o timeline.svg\n  \
    sizeleak plot saved.frames --from 2026-01-06T08:30 --until 2026-01-07 --gateway 192.168.1.20 -o morning.svg\n  \
    sizeleak plot saved.frames --labels truth.csv --width 800 --height 500 --title 'Monday' -o monday.svg\n  \
    detector --profile home.profile.toml < saved.frames | sizeleak plot -o deviations.svg\n  \
    sizeleak plot home.profile.toml --gateway 192.168.1.20 -o habits.svg\n\n\
    Of a stream, above is the size of each command. Below, each action has a lane, for each gateway and service, and \
    each command a bar in the lanes of its most probable actions: the higher, the more actions, by one scale for all lanes; the darker, \
    the more probable. The tooltip of a bar names the actions. With labels, outlines are the true actions, and a cross \
    marks a command whose most probable actions are others. Deviations, as `sizeleak detect` and the stage `detector` \
    write them, have a lane for each kind; the tooltip says what was seen. Of a profile, each action has its hours by \
    weekdays, the darker the more commands, and below are the commands that come at about the same time, by the clock of \
    the home.")]
pub(crate) struct Arguments {
    /// Frames or JSON lines, as `sizeleak run` and `detect` write them, or a profile; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The same as FILE
    #[arg(short = 'r', long, value_name = "FILE", conflicts_with = "file", help_heading = INPUT)]
    input: Option<PathBuf>,

    /// What to draw [default: by what FILE is]
    #[arg(long, value_name = "KIND", value_enum, help_heading = OUTPUT)]
    kind: Option<PictureKind>,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    clock: ClockOption,

    #[command(flatten)]
    filter: FilterOptions,

    /// Draw only this many commands and deviations, the first ones [default: 10000]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,

    #[command(flatten)]
    picture: PictureOptions,

    #[command(flatten)]
    truth: TruthOptions,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PictureKind {
    /// The commands and deviations of a stream over time
    Timeline,
    /// What the home of a profile usually does: hours by weekdays, and routines
    Profile,
}

/// How the picture looks.
#[derive(Debug, Args)]
struct PictureOptions {
    /// The title [default: what is drawn]
    #[arg(long, value_name = "TEXT", help_heading = OUTPUT)]
    title: Option<String>,

    /// The width in pixels [default: by what is drawn]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(400..=20_000), help_heading = OUTPUT)]
    width: Option<u32>,

    /// The height in pixels [default: by what is drawn]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(200..=20_000), help_heading = OUTPUT)]
    height: Option<u32>,
}

/// What the commands really were.
#[derive(Debug, Args)]
struct TruthOptions {
    /// Draw the true actions over the commands: labels as CSV, as `sizeleak evaluate` takes them
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    labels: Option<PathBuf>,

    #[command(flatten)]
    reading: LabelReading,

    #[command(flatten)]
    clock: LabelClockOption,
}

impl TruthOptions {
    /// The labels, if there are any.
    fn read(&self) -> Result<Option<LabelFile>, Failure> {
        let times = self.reading.times(&self.clock, &[])?;
        let labels = self.labels.as_deref().map(|path| LabelFile::read(path, &times));
        labels.transpose().map_err(|error| anyhow!(error).into())
    }
}

/// What to draw of the input; by default all.
#[derive(Debug, Args)]
struct FilterOptions {
    /// Only what is of this time or later: RFC 3339, or a date (with a time) by the clock of `--time`
    #[arg(long, value_name = "TIME")]
    from: Option<TimePoint>,

    /// Only what is before this time
    #[arg(long, value_name = "TIME")]
    until: Option<TimePoint>,

    /// Only commands, deviations or the home of these gateways; can be repeated
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    gateway: Vec<IpAddr>,

    /// Only commands and deviations of these flows, as JSON and CSV name them; can be repeated
    #[arg(long, value_name = "FLOW", value_delimiter = ',')]
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
    let filter = arguments.filter.filter(&times)?;
    let mut files = RunFiles::new();
    let stream = arguments.file.as_deref().or(arguments.input.as_deref());
    files.reads("the stream", stream.unwrap_or(Path::new("-")));
    arguments.truth.labels.iter().for_each(|path| files.reads("the labels", path));
    arguments.output.add_to(&mut files);
    files.check()?;
    check_picture(arguments.output.path())?;
    let labels = arguments.truth.read()?;
    let (input, name) = open(stream)?;
    let mut input = BufReader::new(input);
    let first = input.fill_buf().with_context(|| name.clone())?.first().copied();
    let by_input = if first.is_some_and(begins_toml) { PictureKind::Profile } else { PictureKind::Timeline };
    match arguments.kind.unwrap_or(by_input) {
        PictureKind::Profile => draw_profile(arguments, input, &name),
        PictureKind::Timeline => draw_timeline(
            arguments,
            input,
            &name,
            &times,
            Timeline::new(arguments.limit.unwrap_or(LIMIT) as usize, filter),
            labels,
        ),
    }
}

/// Whether a file of text that begins so can be TOML. Frames begin with a byte that is no text, and JSON with a brace.
fn begins_toml(first: u8) -> bool {
    first.is_ascii_graphic() && first != b'{'
}

fn draw_profile(arguments: &Arguments, input: impl BufRead, name: &str) -> Result<ExitCode, Failure> {
    let filter = &arguments.filter;
    let of_timelines = [
        ("--from", filter.from.is_some()),
        ("--until", filter.until.is_some()),
        ("--flow", !filter.flow.is_empty()),
        ("--labels", arguments.truth.labels.is_some()),
        ("--limit", arguments.limit.is_some()),
    ];
    if let Some((option, _)) = of_timelines.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(anyhow!(
            "`{option}` is about a timeline, and {name} is drawn as a profile: leave it out"
        )));
    }
    let profile = profile::read(input).map_err(|error| match arguments.kind {
        None => anyhow!("{name}: it is neither frames nor JSON lines, and {error:#}"),
        Some(_) => anyhow!("{name}: {error:#}"),
    })?;
    let (gateway, home) = profile::home(&profile, &filter.gateway).with_context(|| name.to_owned())?;
    let (own_title, home) = (format!("Habits of the home behind {gateway}"), profile::habits(&home, profile.zone()));
    arguments.write(|size, title| habits_svg(&home, size, title.unwrap_or(&own_title)))?;
    Ok(ExitCode::SUCCESS)
}

fn draw_timeline(
    arguments: &Arguments,
    input: impl BufRead,
    name: &str,
    times: &TimeFormat,
    mut timeline: Timeline,
    labels: Option<LabelFile>,
) -> Result<ExitCode, Failure> {
    let read = read_answers(input, &mut timeline);
    if !arguments.log.is_quiet() {
        report_omissions(&timeline);
    }
    if let Some(labels) = labels.filter(|_| !timeline.times().is_empty()) {
        add_truth(&mut timeline, &labels)?;
    }
    // Commands before the damage are drawn.
    arguments.write(|size, title| svg_of(&timeline, times, size, title))?;
    read.map(|()| ExitCode::SUCCESS).map_err(|error| {
        let code = if error.is_cut() { 3 } else { 1 };
        Failure::with_code(code, anyhow!("{name}: {error}"))
    })
}

impl Arguments {
    /// Writes a picture of the size and title that are asked for.
    fn write(&self, draw: impl FnOnce(PictureSize, Option<&str>) -> Result<String, TooSmall>) -> Result<(), Failure> {
        let PictureOptions { title, width, height } = &self.picture;
        let size = PictureSize { width: *width, height: *height };
        let picture = draw(size, title.as_deref()).map_err(Failure::usage)?;
        Ok(self.output.write(picture.as_bytes())?)
    }
}

/// Adds the labels around the time of the commands, each with its command.
fn add_truth(timeline: &mut Timeline, labels: &LabelFile) -> Result<(), Failure> {
    let times = timeline.times();
    let tolerance = labels.tolerance(None);
    let aligned = labels.aligned(&times, tolerance);
    if aligned.clock().is_some_and(|clock| !matches!(clock, LabelClock::Given(_))) && aligned.times() != labels.times()
    {
        say(
            "sizeleak",
            "the clock of the labels is not that of the captures: `sizeleak evaluate` says how they differ",
        );
    }
    let commands: BTreeMap<usize, usize> = aligned.matching(&times, tolerance)?.pairs.into_iter().collect();
    let (first, last) = (times.iter().min(), times.iter().max());
    let reach = tolerance.nanoseconds();
    let is_near = |time_ns: i64| {
        first.is_some_and(|first| time_ns >= first.saturating_sub(reach))
            && last.is_some_and(|last| time_ns <= last.saturating_add(reach))
    };
    let names: Vec<Arc<str>> = aligned.labels().actions.iter().map(|name| Arc::from(name.as_str())).collect();
    let mut outside = 0;
    for (row, label) in aligned.labels().rows.iter().enumerate() {
        let command = commands.get(&row).copied();
        if command.is_none() && !is_near(label.time_ns) {
            outside += 1;
            continue;
        }
        let actions = names.iter().cloned().zip(label.counts.iter().map(|count| u64::from(*count)));
        let actions = actions.filter(|(_, count)| *count > 0).collect();
        timeline.add_truth(Truth { time_ns: label.time_ns, actions, command });
    }
    if outside > 0 {
        say(
            "sizeleak",
            &format!("{} outside the time of the commands that are drawn", counted(outside, "label is", "labels are")),
        );
    }
    Ok(())
}

/// Reports commands and deviations that the picture does not show.
fn report_omissions(timeline: &Timeline) {
    let (drawn, accepted, rejected) = (timeline.drawn(), timeline.accepted(), timeline.rejected());
    let words = if accepted == 0 && rejected > 0 {
        format!("none of {rejected} commands and deviations has the times, gateways and flows to draw")
    } else if accepted == 0 {
        "there is no identification to draw, which the decomposer and the pruner make, and no deviation".to_owned()
    } else if drawn < accepted {
        format!("the first {drawn} of {accepted} commands and deviations are drawn (--limit sets how many)")
    } else {
        return;
    };
    say("sizeleak", &words);
}
