//! `sizeleak detect`: what is not as usual in a home.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use sizeleak_detector::{Detector, DetectorInput};
use sizeleak_frame::Frame;
use sizeleak_habits::{Budget, Disorder, Profile};
use sizeleak_output::{AnswerSink, HexLength, KindSelection, OutputFormat, OutputWriter};
use sizeleak_platform::runtime::Stage;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{TimeRange, counted};

use super::frames::check_target;
use super::output_option::{EncodedFile, OutputOption, one_of};
use super::shared_options::{ClockOption, INPUT, OUTPUT, TimeRangeOption};
use super::traffic_input::AnswersInput;

/// Find what is not as usual in a home, with few false alarms
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak detect today.frames --profile home.profile.toml\n  \
    sizeleak detect march.ndjson --profile home.profile.toml --alarms 1/month --format csv -o march.csv\n  \
    sizeleak detect today.frames --profile home.profile.toml --until 2026-03-01T18:00:00Z\n\n\
    A line for each incident: when, its kind, the share of usual days that are as strange, what was seen, and what would \
    have been usual. The kinds: action (rare or new), command (unusual now), burst, slow-burst, shifted-routine, overdue, \
    silence, and stranger (another household's habits). The home is learned further while it is watched, so that the \
    budget holds as habits change; so it is from answers before `--since`. `--until` also says until when the traffic was \
    watched, else that is the last answer: what should have come by then is missed. Until enough days are known there is \
    no alarm, and how many are missing is said. The exit code is 0 with and without deviations.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    answers: AnswersInput,

    /// What the home usually does, made by `sizeleak profile`
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    profile: PathBuf,

    /// How many false alarms a home may have, such as 1/week, 1/month or 0.1/day
    #[arg(long, alias = "budget", value_name = "ALARMS/TIME", default_value_t = Budget::WEEKLY)]
    alarms: Budget,

    #[command(flatten)]
    range: TimeRangeOption,

    /// The format: table, ndjson, csv or parquet [default: by the name of FILE, else table]
    #[arg(long, value_parser = one_of(&FORMATS), hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<OutputFormat>,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    clock: ClockOption,
}

const FORMATS: [OutputFormat; 4] =
    [OutputFormat::Table, OutputFormat::Ndjson, OutputFormat::Csv, OutputFormat::Parquet];

struct Watch {
    detector: Detector,
    out: Vec<Frame>,
    range: TimeRange,
    /// Those of the range, and of these the ones that the profile was not learned from.
    seen: u64,
    answers: u64,
    deviations: u64,
}

impl Watch {
    fn take(&mut self) -> Vec<Frame> {
        // What is missed is found behind the last answer.
        let range = TimeRange { until_ns: None, ..self.range };
        self.out.retain(|frame| frame.time_ns().is_some_and(|time_ns| range.contains(time_ns)));
        self.deviations += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }
}

impl AnswerSink for Watch {
    fn add(&mut self, frame: Frame) {
        let known = self.detector.known();
        let is_within = matches!(&frame, Frame::Identification(answer) if self.range.contains(answer.command.time_ns));
        if let Ok(input) = DetectorInput::try_from(frame) {
            // A list takes whatever it is given.
            let _ = self.detector.process(input, &mut self.out);
        }
        self.out.retain(|frame| matches!(frame, Frame::Deviation(_)));
        self.seen += u64::from(is_within);
        self.answers += u64::from(is_within && self.detector.known() == known);
    }

    fn learn(&mut self, flow: u64, gateway: Option<&str>, _: Option<&str>) {
        if let Some(gateway) = gateway {
            self.detector.name_gateway(flow, gateway);
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let format = arguments.output.form(arguments.format, &FORMATS, "sizeleak detect")?.unwrap_or_default();
    let range = arguments.range.range()?;
    let profile = Profile::read(&arguments.profile)?;
    let mut file = arguments.output.create()?;
    let output = file.writer()?;
    check_target(format, &output)?;
    let style = arguments.clock.style(HexLength::default(), &output)?;
    let mut writer = OutputWriter::new(
        format,
        KindSelection::Kinds(vec!["deviation".into()]),
        style,
        EncodedFile::new(output, arguments.output.path()),
    )?;
    let detector = Detector::new(profile, arguments.alarms);
    let mut watch = Watch { detector, out: Vec::new(), range, seen: 0, answers: 0, deviations: 0 };
    arguments.answers.read(TimeRange { since_ns: None, ..range }, &mut watch, |watch, file| {
        check_order(watch, file)?;
        writer.write_all(&watch.take()).context("the output cannot be written")
    })?;
    if let (Some(_), None, 0) = (range.since_ns, range.until_ns, watch.seen) {
        return Err(anyhow!("no answer is {range}: say with `--until` how long the traffic was watched"));
    }
    watch.detector.watched_until(range.until_ns, &mut watch.out);
    let written = writer.write_all(&watch.take()).and_then(|()| writer.finish());
    written.context("the output cannot be written")?;
    file.keep()?;
    let mut notices = Vec::new();
    let _ = watch.detector.finish(&mut notices);
    for notice in
        notices.into_iter().filter_map(|frame| if let Frame::Notice(notice) = frame { notice.detail } else { None })
    {
        say("sizeleak", &notice);
    }
    let (known, Watch { answers, deviations, .. }) = (watch.detector.known(), watch);
    let deviations = counted(deviations, "deviation", "deviations");
    say("sizeleak", &format!("{deviations} in {}", counted(answers, "answer", "answers")));
    if known > 0 {
        let known = counted(
            known,
            "answer is not after those of the profile, and was",
            "answers are not after those of the profile, and were",
        );
        say("sizeleak", &format!("{known} passed over"));
    }
    Ok(())
}

fn check_order(watch: &Watch, file: &Path) -> Result<()> {
    let Some(Disorder { first_ns, before_ns, .. }) = watch.detector.disorder() else { return Ok(()) };
    let [time, last] = [first_ns, before_ns].map(sizeleak_text::utc);
    Err(anyhow!("{}: an answer of {time} comes after one of {last}: name the answers in order of time", file.display()))
}
