//! `sizeleak run`: a whole pipeline in one command.

use std::io;
use std::path::PathBuf;

use anyhow::{Error, Result, anyhow};
use clap::{Args, ValueEnum};
use sizeleak_frame::{BATCH_ROWS, Frame, FrameSink, what};
use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter};
use sizeleak_pipeline::{Mode, ModelFit, Pipeline, PreparedRun, RunEnding, RunReport, TrafficSeen};
use sizeleak_platform::runtime::program::{LatencyLog, MetricsFlags, SandboxFlags};
use sizeleak_platform::runtime::{Access, Interrupt, Sandbox};
use sizeleak_platform::telemetry::log::{self, say, say_latency};
use sizeleak_platform::telemetry::{CaptureFaults, Tally, Telemetry};

use super::failure::{LossLimit, MAX_NOTES, PayloadLoss, check_fit, usage, with_code};
use super::frames::{check_columns, check_target, known_kind};
use super::output_option::{EncodedFile, OutputOption, keep_partial};
use super::progress::ProgressFlags;
use super::session::Session;
use super::shared_options::{ClockOption, MEASURING, OUTPUT, STAGES, TimeCut};
use super::start_point::{ContinuedRun, FILE, StartPoint, refuse_model, report_unsaved};
use super::traffic_input::{StageOptionArguments, choose_gateway};

/// Run a pipeline: captures in, the users' commands out
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n  \
    sizeleak run pipeline.toml\n  \
    sizeleak run monday.pcap.gz tuesday.pcap.gz --gateway 192.168.1.20 --model model.toml -o commands.ndjson\n  \
    sizeleak run archive --gateway 192.168.1.20 --model model.toml\n  \
    tcpdump -U -w - | sizeleak run --gateway 192.168.1.20 --model model.toml\n  \
    sizeleak run pipeline.toml --set pruner.mode=paper --set decomposer.limit=100 --latency\n  \
    sizeleak run pipeline.toml --set record-sizer.save=records.frames.zst\n  \
    sizeleak run pipeline.toml records.frames.zst --set command-segmenter.gap=80ms\n  \
    sizeleak run 09h.pcap --gateway 192.168.1.20 --state home.state -o 09h.frames\n  \
    sizeleak run 08h.frames 09h.frames --model model.toml\n  \
    sizeleak run week.pcap --gateway 192.168.1.20 --model model.toml --until 2026-01-08 -o first.frames\n\n\
    Without a pipeline file, ./pipeline.toml is used if it exists, and said so, else the seven stages with their \
    defaults. Files that are named replace the captures in a pipeline file. Where no input is named, stdin is read.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    start: StartPoint,

    #[command(flatten)]
    options: StageOptionArguments,

    /// The model of the gateway, made by `sizeleak learn`; can be repeated, for several services
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: Vec<PathBuf>,

    /// What the home usually does, made by `sizeleak profile`: a prior beside the model's
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    profile: Option<PathBuf>,

    /// Where the stages run: threads of one process, or processes [default: as in the pipeline file, else threads]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = STAGES)]
    mode: Option<Mode>,

    /// The format: table, ndjson, json, csv, parquet, zeek or frames [default: by the name of FILE, else table]
    #[arg(long, value_enum, hide_possible_values = true, help_heading = OUTPUT)]
    format: Option<OutputFormat>,

    /// Write frames of this kind, such as `record` or `command`; can be repeated
    ///
    /// No stage runs behind the one that makes them: `--kind record` and `--kind command` need no model. By default
    /// identifications in tables, CSV, Parquet and Zeek, all traffic in JSON, and everything in frames. A stream of frames
    /// has `hello`, `flow`, `session` and `summary` in any case: without them no program reads it.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = known_kind, help_heading = OUTPUT)]
    kind: Vec<String>,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    clock: ClockOption,

    /// Print a table of the stages' latencies on stderr at the end
    #[arg(long, help_heading = MEASURING)]
    latency: bool,

    /// Write the latencies to FILE as an HdrHistogram interval log
    #[arg(long, value_name = "FILE", help_heading = MEASURING)]
    latency_log: Option<PathBuf>,

    #[command(flatten)]
    max_loss: LossLimit,

    #[command(flatten)]
    metrics: MetricsFlags,

    #[command(flatten)]
    sandbox: SandboxFlags,

    #[command(flatten)]
    progress: ProgressFlags,
}

pub(crate) fn run(mut arguments: Arguments, session: &mut Session) -> Result<()> {
    arguments.start.take_streams();
    let (arguments, start) = (&arguments, &arguments.start);
    let format =
        arguments.output.form(arguments.format, OutputFormat::value_variants(), "sizeleak run")?.unwrap_or_default();
    start.input.check()?;
    let found = start.found_pipeline()?;
    let pipeline = configure(arguments, found.as_ref())?;
    let mut pipeline = start.limit(pipeline, &arguments.kind, format)?;
    let selection = select(arguments, format, &pipeline);
    check_columns(format, &selection)?;
    let telemetry = Telemetry::new();
    let interrupt = Interrupt::on_signals()?;
    let cut = arguments.cut()?;
    let found = arguments.without_model(found.as_ref());
    let mut prepared = start.prepare(&mut pipeline, &arguments.kind, found, session, &interrupt)?;
    let saves = prepared.saves();
    let continued = start.begin(&mut prepared, &pipeline)?;
    for (kind, stage) in pipeline.consumed(&arguments.kind) {
        say("note", &format!("no `{kind}` comes out, because {stage} consumes each: `--kind {kind}` alone shows them"));
    }
    let access = pipeline.settings.sandbox.then(|| arguments.access(&prepared, continued.as_ref())).flatten();
    let mut file = arguments.output.create()?;
    let output = file.writer()?;
    check_target(format, &output)?;
    let style = arguments.clock.style(HexLength::default(), &output)?;
    let log = pipeline.settings.latency_log.as_deref().map(LatencyLog::create).transpose().map_err(Error::msg)?;
    // Before any thread starts, and after everything but the captures is open.
    let sandbox = access.as_ref().map(Sandbox::limit_files);
    let served = arguments.metrics.serve(&telemetry)?;
    let bar = arguments.progress.begin(telemetry.progress(), &session.screen, &output);
    if served.is_some() || bar.is_some() {
        prepared.report_to(&telemetry);
    }
    if let Some(served) = &served {
        say("sizeleak", &format!("metrics at {}", served.url()));
    }
    let output = EncodedFile::new(output, arguments.output.path());
    let mut sink = OutputSink {
        is_live: output.is_plain(),
        writer: OutputWriter::new(format, selection, style, output)?,
        notices: Tally::default(),
        repeated: None,
        faults: CaptureFaults::default(),
        unread: Vec::new(),
        cut,
        rows: Tally::default(),
        seen: TrafficSeen::default(),
        telemetry: served.is_some().then(|| telemetry.clone()),
        unreported: 0,
    };
    if let Some(sandbox) = sandbox {
        sandbox.complete("sizeleak");
    }
    let run = prepared.run(&interrupt, &mut sink);
    let finished = sink.writer.finish();
    drop((bar, served));
    let summary = run.as_ref().ok().and_then(|report| report.summary.as_ref());
    let loss = summary.and_then(PayloadLoss::of);
    sink.faults.print(run.as_ref().err().map(|error| &*error.cause));
    sink.print_counts(loss);
    if run.as_ref().is_ok_and(|report| report.ending == RunEnding::Done) && pipeline.has("command-segmenter") {
        sink.explain_silence();
    }
    report_unsaved(&saves, run.as_ref().ok());
    let report = match run {
        Ok(report) => report,
        // A header alone says nothing.
        Err(error) if sink.rows.is_empty() => return Err(error.into()),
        Err(error) => return keep_partial(file).and(Err(error.into())),
    };
    if let Err(error) = finished
        && report.ending != RunEnding::Closed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(anyhow!("the output cannot be written: {error}"));
    }
    if report.ending == RunEnding::Done {
        sink.cut.report("rows")?;
    }
    // Also of a run that was stopped: it has everything read until then.
    file.keep()?;
    report_latency(arguments, log, &report)?;
    match report.ending {
        RunEnding::Done => {
            let state = continued.as_ref().map(|continued| continued.path);
            arguments.max_loss.check(loss, state)?;
            check_fit(report.summary.as_ref().map_or(ModelFit::All, ModelFit::of))?;
            // Last: unless the run succeeds, the same run again replaces its output.
            continued.map_or(Ok(()), ContinuedRun::keep)
        }
        RunEnding::Closed => continued.map_or(Ok(()), |continued| Err(continued.unread())),
        RunEnding::Interrupted => Err(with_code(130, anyhow!("stopped; everything read until then is processed"))),
    }
}

impl Arguments {
    fn cut(&self) -> Result<TimeCut> {
        let range = self.start.range.range()?;
        if !range.is_everything() && self.kind.iter().any(|kind| ["packets", "segments"].contains(&kind.as_str())) {
            let fault = "`--since` and `--until` choose records, commands and answers, not packets and segments";
            return Err(usage!(fault));
        }
        Ok(TimeCut::new(range))
    }

    fn without_model<'a>(&self, found: Option<&'a Pipeline>) -> Option<&'a Pipeline> {
        found.filter(|_| self.model.is_empty() && !self.options.name_a_model())
    }

    /// What a run opens; `None` if it starts programs.
    fn access(&self, prepared: &PreparedRun, continued: Option<&ContinuedRun<'_>>) -> Option<Access> {
        let mut access = prepared.access()?.clone();
        let state = continued.map(|continued| continued.path);
        for file in self.output.path().into_iter().chain(self.latency_log.as_deref()).chain(state) {
            access.write_beside(file);
        }
        Some(access)
    }
}

fn configure(arguments: &Arguments, found: Option<&Pipeline>) -> Result<Pipeline> {
    let StartPoint { input, .. } = &arguments.start;
    if let Some(found) = arguments.without_model(found).filter(|_| !input.captures().is_empty()) {
        refuse_model(&found.making(&arguments.start.needed(&arguments.kind), None))?;
    }
    let mut pipeline = match (input.pipeline()?, found) {
        (Some(file), _) => Pipeline::read(file)?,
        (None, Some(found)) => found.clone(),
        (None, None) => Pipeline::standard(),
    };
    input.read_captures(&mut pipeline)?;
    if let Some(profile) = &arguments.profile {
        pipeline.use_profile(profile)?;
    }
    arguments.options.apply(&mut pipeline, &arguments.model)?;
    if input.streams().is_empty() && pipeline.making(&arguments.kind, None).has("flow-filter") {
        choose_gateway(&mut pipeline)?;
    }
    if let Some(mode) = arguments.mode {
        pipeline.settings.mode = mode;
    }
    if let Some(log) = &arguments.latency_log {
        pipeline.settings.latency_log = Some(log.clone());
    }
    pipeline.settings.sandbox &= arguments.sandbox.are_on();
    if found.is_some() {
        say("sizeleak", &format!("pipeline ./{FILE}"));
    }
    input.report_unread_stdin(&pipeline);
    Ok(pipeline)
}

/// What a stream of frames has beside the kinds asked for, so that it can be read again: what begins and ends it, and what
/// the others are about.
const OF_STREAM: [&str; 4] = ["hello", "flow", "session", "summary"];

fn select(arguments: &Arguments, format: OutputFormat, pipeline: &Pipeline) -> KindSelection {
    if !arguments.kind.is_empty() {
        let of_stream = if format == OutputFormat::Frames { &OF_STREAM[..] } else { &[] };
        let kinds = arguments.kind.iter().cloned().chain(of_stream.iter().map(|kind| (*kind).to_owned()));
        return KindSelection::Kinds(kinds.collect());
    }
    match format {
        OutputFormat::Table => KindSelection::Results,
        OutputFormat::Ndjson | OutputFormat::Json => KindSelection::Traffic,
        OutputFormat::Csv | OutputFormat::Parquet | OutputFormat::Zeek => {
            KindSelection::Kinds(pipeline.makes().map(str::to_owned).into_iter().collect())
        }
        OutputFormat::Frames => KindSelection::All,
    }
}

fn report_latency(arguments: &Arguments, log: Option<LatencyLog>, report: &RunReport) -> Result<()> {
    let Some(summary) = &report.summary else { return Ok(()) };
    if arguments.latency {
        say_latency("sizeleak", summary);
    }
    log.map_or(Ok(()), |log| log.save(summary, report.start, report.clock)).map_err(Error::msg)
}

struct OutputSink {
    writer: OutputWriter<EncodedFile>,
    /// Whether somebody may read the output before its end.
    is_live: bool,
    notices: Tally,
    /// Which packets an earlier run with this state has read.
    repeated: Option<String>,
    faults: CaptureFaults,
    /// What was not read, as far as notices are not printed.
    unread: Vec<String>,
    cut: TimeCut,
    rows: Tally,
    seen: TrafficSeen,
    /// Where counts are reported during the run, if metrics are served.
    telemetry: Option<Telemetry>,
    unreported: u64,
}

impl FrameSink for OutputSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        frames.retain(|frame| self.cut.keeps(frame));
        let written = self.write(frames);
        frames.clear();
        written
    }

    fn pause(&mut self) -> io::Result<()> {
        self.report();
        if self.is_live { self.writer.flush() } else { Ok(()) }
    }
}

impl OutputSink {
    fn write(&mut self, frames: &[Frame]) -> io::Result<()> {
        for same_kind in frames.chunk_by(Frame::is_same_kind) {
            let Some(first) = same_kind.first() else { continue };
            let rows = if first.is_batch() { same_kind.iter().map(Frame::rows).sum() } else { same_kind.len() as u64 };
            match first {
                Frame::Notice(_) => same_kind.iter().for_each(|frame| self.note(frame)),
                Frame::Hello(_) | Frame::Summary(_) => {}
                _ => self.rows.add(first.kind(), rows),
            }
            if matches!(first, Frame::Flow(_) | Frame::Summary(_)) {
                for frame in same_kind {
                    self.seen.add(frame);
                }
            }
            self.unreported += rows;
            self.writer.write_kind(first.kind(), same_kind)?;
        }
        if self.unreported >= BATCH_ROWS as u64 {
            self.report();
        }
        Ok(())
    }

    fn report(&mut self) {
        self.unreported = 0;
        if let Some(telemetry) = &self.telemetry {
            telemetry.set_output(&self.rows);
        }
    }

    fn note(&mut self, frame: &Frame) {
        let Frame::Notice(notice) = frame else { return };
        self.notices.add(&notice.what, 1);
        self.faults.add(notice);
        if let Some(telemetry) = &self.telemetry {
            telemetry.count_notice(notice);
        }
        if notice.what == what::REPEATED {
            self.repeated.clone_from(&notice.detail);
        }
        let is_unread = [what::UNSUPPORTED, what::NOT_SIZED].contains(&&*notice.what) && !CaptureFaults::is_one(notice);
        if is_unread && !log::is_verbose() && self.unread.len() < MAX_NOTES {
            self.unread.extend(notice.detail.clone());
        }
        log::notice(notice);
    }

    fn explain_silence(&self) {
        if self.cut.range.is_everything() && !self.has_any(&["command", "correction", "identification"]) {
            say("note", &format!("there is no command: {}", self.seen));
        }
    }

    fn has_any(&self, kinds: &[&str]) -> bool {
        self.rows.iter().any(|(name, _)| kinds.contains(&name))
    }

    fn print_counts(&self, loss: Option<PayloadLoss>) {
        let rows = if self.rows.is_empty() { "nothing came out".to_owned() } else { self.rows.to_string() };
        let notices = match (self.notices.is_empty(), log::is_verbose()) {
            (true, _) => String::new(),
            (false, true) => format!("; notices: {}", self.notices),
            (false, false) => format!("; notices: {} (-v prints each)", self.notices),
        };
        let loss = loss.and_then(PayloadLoss::describe).map_or_else(String::new, |loss| format!("; {loss}"));
        say("sizeleak", &format!("{rows}{notices}{loss}"));
        if let Some(detail) = self.repeated.as_deref().filter(|_| !log::is_verbose()) {
            say("note", detail);
        }
        // Perhaps what is missing is in there.
        if !self.has_any(&["record", "command", "correction", "identification"]) {
            self.unread.iter().for_each(|detail| say("note", detail));
        }
    }
}
