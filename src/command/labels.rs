//! Labelled captures, how their labels are read, and the pipeline that finds commands in them. And `sizeleak labels`: how a
//! file of labels is read, the same labels as plain CSV, and the map of a log.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use clap::{Arg, Args};
use jiff::{SignedDuration, Timestamp};
use sizeleak_capture::CaptureReader;
use sizeleak_evaluation::with_labelled_gateways;
use sizeleak_learning::digest_captures;
use sizeleak_learning::labels::{
    DateFormat, Label, LabelFile, LabelForm, LabelMap, LabelOffset, LabelTimes, LabelZone, LabelledCapture, Labels,
    NameRule, Tolerance,
};
use sizeleak_model::{CaptureDigest, Model};
use sizeleak_pipeline::{InputPart, InputSource, Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::{say, show};
use sizeleak_text::{counted, escaped_lines, listed};

use super::document::quoted;
use super::failure::{parsed, usage};
use super::output_option::OutputOption;
use super::session::Operand;
use super::shared_options::{INPUT, TimeRangeOption};
use super::traffic_input::{StageOptionArguments, TrafficInput};

/// The stages before this one find commands.
pub(super) const CORRECTOR: &str = "epsilon-corrector";

#[derive(Debug, Args)]
pub(super) struct LabelledCaptures {
    #[command(flatten)]
    pub(super) traffic: TrafficInput,

    /// The true actions of each command, as CSV
    ///
    /// `time,<action>,<action>…` with a row for each command, or `time,action[,count]` with a row for each action.
    /// `sizeleak labels FILE` shows how it is read, and makes labels of other forms and of logs.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pub(super) labels: Option<PathBuf>,

    /// Every capture or stream holds one command, and its file's name is the action. As in `toggle.pcap`,
    /// `toggle_001.pcap`, `2023-08-06_toggle-1.pcap`; or the name of its folder (`toggle/001.pcap`). Only the order of
    /// its packets counts. REGEX says where else names have the action: a group (?<action>…), and perhaps one
    /// (?<count>…).
    #[arg(long, value_name = "REGEX", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["labels", "tolerance"], help_heading = INPUT)]
    labels_from_names: Option<NameRule>,

    /// How far a command may be from its label [default: 2s; 90s if the labels' times have no seconds]
    #[arg(long, value_name = "TIME", help_heading = INPUT)]
    pub(super) tolerance: Option<Tolerance>,

    #[command(flatten)]
    pub(super) range: TimeRangeOption,

    #[command(flatten)]
    options: StageOptionArguments,
}

impl LabelledCaptures {
    /// The digests of the streams, or of the captures: of several, those alone that are captures and teach something.
    pub(super) fn digests(&self, pipeline: &Pipeline) -> Result<Vec<CaptureDigest>> {
        let mut files = self.traffic.streams();
        if files.is_empty() {
            files = TrafficInput::single_captures(pipeline).0;
            if files.len() > 1 {
                files.retain(|file| CaptureReader::open(file).is_ok());
            }
        }
        Ok(digest_captures(&files)?)
    }

    pub(super) fn gateways(&self) -> Vec<IpAddr> {
        self.options.gateways()
    }

    pub(super) fn learned_from(&self, models: &[Model], pipeline: &Pipeline) -> Result<Vec<String>> {
        let mut learned = models.iter().flat_map(|model| &model.learned.captures).peekable();
        if learned.peek().is_none() {
            // Captures may be large: none is read for its digest that nothing is compared with.
            return Ok(Vec::new());
        }
        let digests: BTreeSet<String> = self.digests(pipeline)?.into_iter().map(|capture| capture.sha256).collect();
        Ok(learned.filter(|capture| digests.contains(&capture.sha256)).map(|capture| capture.name.clone()).collect())
    }

    pub(super) fn are_labelled(&self) -> bool {
        self.labels.is_some() || self.labels_from_names.is_some()
    }

    /// The labels, read as `reading` says; `None` for a command that reads those alone that need no options.
    pub(super) fn read_labels(
        &self,
        input: &PipelineInput,
        pipeline: &Pipeline,
        reading: Option<&LabelReading>,
    ) -> Result<LabelFile> {
        if let Some(path) = &self.labels {
            let labels = match reading {
                Some(reading) => {
                    Operand::check_labels(path)?;
                    let (captures, _) = TrafficInput::single_captures(pipeline);
                    LabelFile::read(path, &reading.times(&captures)?)?
                }
                None => plain_labels(path)?,
            };
            return Ok(labels.of_time(self.range.range()?));
        }
        let Some(rule) = &self.labels_from_names else {
            return Err(usage!(
                "the labels are missing: name them with `--labels FILE`, or say `--labels-from-names` where each capture is \
                 named for its action"
            ));
        };
        let captures = input.parts(pipeline)?.into_iter();
        let captures: Vec<LabelledCapture> =
            captures.map(|InputPart { path, span, .. }| LabelledCapture { path, span }).collect();
        Ok(LabelFile::of_names(&captures, rule)?.of_time(self.range.range()?))
    }

    pub(super) fn input(&self, pipeline: &Pipeline) -> Result<PipelineInput> {
        if self.labels_from_names.is_some() || !self.traffic.streams().is_empty() {
            return self.input_by_capture(pipeline);
        }
        self.input_from(InputSource::Captures)
    }

    /// The same with captures that are read one by one.
    pub(super) fn input_by_capture(&self, pipeline: &Pipeline) -> Result<PipelineInput> {
        let streams = self.traffic.streams();
        if !streams.is_empty() {
            return self.input_from(InputSource::Streams(streams));
        }
        let (captures, skipped) = TrafficInput::single_captures(pipeline);
        if skipped > 0 {
            let files = counted(
                skipped,
                "file of the folders is no capture, and is",
                "files of the folders are no captures, and are",
            );
            say("note", &format!("{files} skipped"));
        }
        self.input_from(InputSource::CaptureByCapture(captures))
    }

    pub(super) fn input_from(&self, source: InputSource) -> Result<PipelineInput> {
        let shifts = self.labels_from_names.is_some();
        Ok(PipelineInput::new(source).shifting_overlapping(shifts).within(self.range.range()?))
    }

    /// A pipeline without the gateways that the labels are not about, of which it is said.
    pub(super) fn of_labelled_gateways(
        &self,
        input: &PipelineInput,
        pipeline: &Pipeline,
        labels: &LabelFile,
        models: &[Model],
    ) -> Result<Pipeline> {
        let tolerance = labels.tolerance(self.tolerance);
        let (pipeline, remark) = with_labelled_gateways(input, pipeline, labels, tolerance, models)?;
        if let Some(remark) = remark {
            say("note", &remark);
        }
        Ok(pipeline)
    }

    pub(super) fn pipeline(&self, file: Option<&Path>, models: &[PathBuf], options: &[String]) -> Result<Pipeline> {
        self.traffic.rereadable(file, models, &self.options, options)
    }
}

/// Labels that need no options to be read; where they need one, the error says which command takes it.
pub(super) fn plain_labels(path: &Path) -> Result<LabelFile> {
    Operand::check_labels(path)?;
    LabelFile::read(path, &LabelTimes::default()).map_err(|error| {
        let Some(option) = error.fault().split('`').find(|word| word.starts_with("--label-")) else {
            return error.into();
        };
        let value = if option.contains(' ') { "" } else { " …" };
        let file = quoted(&path.display().to_string());
        anyhow!("{error}; `sizeleak labels {file} {option}{value} -o labels.csv` writes labels that are read without")
    })
}

/// What labels look like, and how their clock is set.
#[derive(Debug, Args)]
pub(super) struct LabelReading {
    /// Which events of a log, as of Home Assistant, are actions; `sizeleak labels LOG` writes it
    #[arg(id = "label_map", long = "label-map", value_name = "FILE", help_heading = INPUT)]
    map: Option<PathBuf>,

    /// The time zone of labels whose times name none, such as Europe/Berlin, +01:00 or UTC
    #[arg(id = "label_zone", long = "label-zone", value_name = "ZONE", allow_hyphen_values = true,
        help_heading = INPUT)]
    zone: Option<LabelZone>,

    /// How the labels' dates are written, such as '%d/%m/%Y %H:%M' [default: the form that reads them all]
    #[arg(id = "label_format", long = "label-format", value_name = "FORMAT", help_heading = INPUT)]
    format: Option<DateFormat>,

    /// What to add to the labels' times, such as 23s or -1h; `start`: they count from the first packet [default: what the
    /// commands show, if that is certain]
    #[arg(id = "label_offset", long = "label-offset", value_name = "TIME", allow_hyphen_values = true,
        value_parser = offset, help_heading = INPUT)]
    offset: Option<Offset>,
}

#[derive(Debug, Clone, Copy)]
enum Offset {
    By(i64),
    Start,
}

fn offset(text: &str) -> Result<Offset, String> {
    if text == "start" { Ok(Offset::Start) } else { offset_by(text, "write it like 23s or -1h, or `start`") }
}

/// The offset of labels that are read without captures.
fn offset_without_start(text: &str) -> Result<Offset, String> {
    if text == "start" {
        return Err("no capture is read here: write the time of its first packet in seconds since 1970, as in \
                    1767600002.024s, or give `learn` and `evaluate` the labels as they are, with `start`"
            .to_owned());
    }
    offset_by(text, "write it like 23s or -1h")
}

fn offset_by(text: &str, advice: &str) -> Result<Offset, String> {
    let duration: SignedDuration = text.parse().map_err(|_| advice.to_owned())?;
    let nanoseconds = i64::try_from(duration.as_nanos());
    nanoseconds.map(Offset::By).map_err(|_| "it must be within 292 years".to_owned())
}

impl LabelReading {
    /// `--labels-from-names` where a command has these options, too.
    pub(super) fn excluded_by(names: Arg) -> Arg {
        names.conflicts_with_all(["label_map", "label_zone", "label_offset"])
    }

    /// How labels are read beside these captures; none where nothing but labels is read.
    pub(super) fn times(&self, captures: &[PathBuf]) -> Result<LabelTimes> {
        let read = |path: &PathBuf| parsed(path, |text| text.parse::<LabelMap>().map_err(Error::msg));
        let map = self.map.as_ref().map(read).transpose()?;
        let offset = match self.offset {
            Some(Offset::By(nanoseconds)) => Some(LabelOffset::By(nanoseconds)),
            Some(Offset::Start) => Some(LabelOffset::From(first_packet(captures)?)),
            None => None,
        };
        Ok(LabelTimes { form: LabelForm { zone: self.zone.clone(), format: self.format.clone(), map }, offset })
    }
}

/// The time of the first packet of all captures, in nanoseconds since the epoch.
fn first_packet(captures: &[PathBuf]) -> Result<i64> {
    let mut first: Option<i64> = None;
    for capture in captures.iter().filter(|capture| capture.is_file()) {
        let file = File::open(capture).with_context(|| capture.display().to_string())?;
        // Damage is reported where the capture is read.
        let packet =
            CaptureReader::new(Box::new(file)).and_then(|mut reader| Ok(reader.next_packet()?.map(|one| one.time_ns)));
        let time_ns = packet.ok().flatten();
        first = first.into_iter().chain(time_ns).min();
    }
    first.ok_or_else(|| {
        usage!(
            "`--label-offset start` needs captures whose first packet can be read: name their files, or write the time of \
             the labels' start into them"
        )
    })
}

/// Show how labels are read, convert them, or write the map of a log of events
#[derive(Debug, Args)]
#[command(mut_arg("label_offset", |offset| offset.value_parser(offset_without_start)
    .help("What to add to the labels' times, such as 23s or -1h")))]
#[command(mut_arg("output", |output| output.help("Write to FILE: the labels as CSV, or the map of a log")))]
#[command(after_help = "Examples:\n  \
    sizeleak labels labels.csv\n  \
    sizeleak labels history.json -o map.toml\n  \
    sizeleak labels history.json --label-map map.toml -o labels.csv\n\n\
    FILE of `-o` is CSV that every command reads without options. A log of events (CSV, JSON or lines of JSON) says \
    which state each entity had when. Without a map of it, a template is written: name the actions in it, delete the \
    other lines, and give it as `--label-map`.")]
pub(crate) struct Arguments {
    /// The labels, or the log
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    reading: LabelReading,

    #[command(flatten)]
    output: OutputOption,
}

const SHOWN: usize = 40;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    Operand::check_labels(&arguments.file)?;
    let path = arguments.file.display();
    let open = || File::open(&arguments.file).with_context(|| path.to_string());
    let LabelTimes { form, offset } = arguments.reading.times(&[])?;
    let mut labels = match Labels::read_in(open()?, &form) {
        Ok(labels) => labels,
        Err(error) if form.map.is_none() => {
            let map = Labels::map_of_log(open()?).map_err(|unknown| {
                // What is wrong with a table of labels says more.
                let fault = if error.is_perhaps_log() { unknown } else { error };
                anyhow!("{path}: {fault}")
            })?;
            arguments.output.write(map.in_words().as_bytes())?;
            let advice = "name its actions in this map, and give it as `--label-map`";
            say("sizeleak", &format!("{path} is a log of events: {advice}"));
            return Ok(());
        }
        Err(error) => return Err(anyhow!("{path}: {error}")),
    };
    if let Some(LabelOffset::By(nanoseconds)) = offset {
        labels.rows.iter_mut().for_each(|row| row.time_ns = row.time_ns.saturating_add(nanoseconds));
    }
    let summary = summary(&path.to_string(), &labels);
    if arguments.output.path().is_none() {
        return arguments.output.write(summary.as_bytes());
    }
    let mut converted = Vec::new();
    labels.write(&mut converted)?;
    show(summary.trim_end());
    arguments.output.write(&converted)
}

fn summary(path: &str, labels: &Labels) -> String {
    let mut text = format!("{path}: {}", counted(labels.rows.len(), "command", "commands"));
    let times = || labels.rows.iter().map(|row| row.time_ns);
    let time = if labels.count_from_a_start() { since_start } else { time };
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        let _ = if first == last {
            write!(text, " at {}", time(first))
        } else {
            write!(text, " from {} to {}", time(first), time(last))
        };
    }
    let total = |action: usize| labels.rows.iter().map(|row| u64::from(row.counts[action])).sum::<u64>();
    let actions = labels.actions.iter().enumerate().map(|(at, name)| format!("{} `{name}`", total(at)));
    let _ = write!(text, "\nactions: {}\n", listed(actions, SHOWN));
    if let Some(Label { time_ns, counts, line }) = labels.rows.iter().min_by_key(|row| row.time_ns) {
        let occurring = labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        let occurring = listed(occurring.map(|(name, count)| format!("{count} `{name}`")), SHOWN);
        let occurring = if occurring.is_empty() { "no action".to_owned() } else { occurring };
        let _ = writeln!(text, "first command, line {line}: {}, {occurring}", time(*time_ns));
    }
    if labels.count_from_a_start() && !labels.rows.is_empty() {
        text += "the times are no dates: they count from a start that the labels do not name; if that is the first packet, \
                 `learn` and `evaluate` take `--label-offset start`\n";
    }
    for note in &labels.notes {
        let _ = writeln!(text, "{note}");
    }
    escaped_lines(&text).into_owned()
}

/// A time that counts from a start of its own.
fn since_start(time_ns: i64) -> String {
    format!("{} s", SignedDuration::from_nanos(time_ns).as_secs_f64())
}

fn time(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| format!("{time_ns} ns"), |time| time.to_string())
}
