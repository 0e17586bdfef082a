//! `sizeleak run`: a whole pipeline in one command.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sizeleak_frame::{BATCH_ROWS, Frame, FrameSink};
use sizeleak_runtime::program::save_latency_log;
use sizeleak_runtime::{ConfigureError, Interrupt};
use sizeleak_telemetry::Telemetry;
use sizeleak_telemetry::log::{self, LogFlags, Screen, say, say_latency};
use sizeleak_telemetry::metrics::{MetricsFlags, MetricsServer};

use super::Failure;
use super::frames::{check_columns, check_target, kind};
use super::gateway_seen::GatewaySeen;
use super::observation::Telling;
use super::progress::ProgressFlags;
use super::reuse::Reuse;
use sizeleak_output::{HexLength, KindSelection, OutputFormat, OutputWriter};
use sizeleak_pipeline::{Mode, Pipeline, RunEnding, RunReport};

/// Run a pipeline: captures in, the users' commands out
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sizeleak run pipeline.toml\n  sizeleak run --input monday.pcap.gz tuesday.pcap.gz \
                        --gateway 192.168.1.20 --model model.toml --format ndjson -o commands.ndjson\n  tcpdump -U -w - \
                        | sizeleak run pipeline.toml --input -\n  sizeleak run --set pruner.mode=paper --set \
                        decomposer.limit=100 --latency\n  sizeleak run --set \
                        record-sizer.save=records.frames.zst\n  sizeleak run --from records.frames.zst --set \
                        command-segmenter.gap=80ms\n\nWithout PIPELINE, ./pipeline.toml is used if it is there, \
                        else the seven stages with their defaults."
)]
pub(crate) struct Arguments {
    /// The pipeline file
    #[arg(value_name = "PIPELINE")]
    pipeline: Option<PathBuf>,

    /// Read these captures (pcap or pcapng, also compressed), `-` for stdin, in place of those in the pipeline file
    #[arg(long, value_name = "FILE", num_args = 1..)]
    input: Vec<PathBuf>,

    #[command(flatten)]
    reuse: Reuse,

    /// The gateway's address or network; several may be given
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    gateway: Vec<String>,

    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Set any option of a stage, over what the pipeline file says
    #[arg(long, value_name = "STAGE.KEY=VALUE")]
    set: Vec<String>,

    /// Where the stages run [default: the pipeline file's, else threads]
    #[arg(long, value_enum)]
    mode: Option<Mode>,

    /// How to write what comes out
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,

    /// Write frames of these kinds [default: identifications as a table, CSV or Parquet, all traffic as JSON, everything as
    /// frames]
    #[arg(long, value_name = "KIND", num_args = 1.., value_delimiter = ',', value_parser = kind)]
    kind: Vec<String>,

    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    appearance: GatewaySeen,

    /// At the end, print a table of the stages' latencies on stderr
    #[arg(long)]
    latency: bool,

    /// Write the latencies to FILE as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    latency_log: Option<PathBuf>,

    #[command(flatten)]
    metrics: MetricsFlags,

    #[command(flatten)]
    progress: ProgressFlags,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

pub(crate) fn run(arguments: &Arguments, screen: &Screen) -> Result<ExitCode, Failure> {
    let pipeline = configure(arguments)?;
    let selection = select(arguments, &pipeline);
    check_columns(arguments.format, &selection)?;
    let telemetry = Telemetry::new();
    let served = arguments.serve(&telemetry)?;
    let interrupt = Interrupt::on_signals()?;
    let (mut prepared, kept) = arguments.reuse.begin(&pipeline, &interrupt, telling(arguments))?;
    let output = match &arguments.output {
        Some(path) => File::create(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?,
        None => super::stdout()?,
    };
    check_target(arguments.format, &output)?;
    let look = arguments.appearance.look(HexLength::default(), &output)?;
    let bar = arguments.progress.begin(telemetry.progress(), screen, &output, &arguments.log);
    if served.is_some() || bar.is_some() {
        prepared.report_to(&telemetry);
    }
    if let Some(served) = served.as_ref().filter(|_| !arguments.log.is_quiet()) {
        say("sizeleak", &format!("metrics at {}", served.url()));
    }
    let mut shown = Shown {
        writer: OutputWriter::new(arguments.format, selection, look, output)?,
        is_verbose: arguments.log.is_verbose(),
        notices: BTreeMap::new(),
        rows: BTreeMap::new(),
        telemetry: served.is_some().then(|| telemetry.clone()),
        unshown: 0,
    };
    let ran = prepared.run(&interrupt, &mut shown);
    let finished = shown.writer.finish();
    drop((bar, served));
    if !arguments.log.is_quiet() {
        shown.say();
    }
    kept.end(ran.as_ref().ok());
    let report = ran?;
    if let Err(error) = finished
        && report.ending != RunEnding::Closed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(anyhow::anyhow!("the output cannot be written: {error}").into());
    }
    report_latency(arguments, &pipeline, &report)?;
    match report.ending {
        RunEnding::Done | RunEnding::Closed => Ok(ExitCode::SUCCESS),
        RunEnding::Interrupted => {
            let stopped = anyhow::anyhow!("stopped; what was read until then is processed");
            Err(Failure::with_code(130, stopped))
        }
    }
}

impl Arguments {
    /// Begins to serve metrics, if that was asked for.
    fn serve(&self, telemetry: &Telemetry) -> Result<Option<MetricsServer>, Failure> {
        let served = self.metrics.serve(telemetry).map_err(ConfigureError::from);
        served.map_err(|error| Failure::with_code(error.exit_code(), error))
    }
}

fn telling(arguments: &Arguments) -> Telling {
    if arguments.log.is_quiet() { Telling::Nothing } else { Telling::Kinds }
}

/// The pipeline of the file, with what the command line sets over it.
fn configure(arguments: &Arguments) -> Result<Pipeline, Failure> {
    let usual = Path::new("pipeline.toml");
    let mut pipeline = match &arguments.pipeline {
        Some(file) => Pipeline::read(file)?,
        None if usual.is_file() => Pipeline::read(usual)?,
        None => Pipeline::standard(),
    };
    if !arguments.input.is_empty() {
        pipeline.read_captures(&arguments.input)?;
    }
    if !arguments.gateway.is_empty() {
        pipeline.set("flow-filter", "gateway", arguments.gateway.clone())?;
    }
    if let Some(model) = &arguments.model {
        pipeline.use_model(model)?;
    }
    for setting in &arguments.set {
        pipeline.set_text(setting)?;
    }
    if let Some(mode) = arguments.mode {
        pipeline.mode = mode;
    }
    Ok(pipeline)
}

fn select(arguments: &Arguments, pipeline: &Pipeline) -> KindSelection {
    if !arguments.kind.is_empty() {
        return KindSelection::Kinds(arguments.kind.clone());
    }
    match arguments.format {
        OutputFormat::Table => KindSelection::Results,
        OutputFormat::Ndjson => KindSelection::Traffic,
        OutputFormat::Csv | OutputFormat::Parquet => {
            KindSelection::Kinds(pipeline.makes().map(str::to_owned).into_iter().collect())
        }
        OutputFormat::Frames => KindSelection::All,
    }
}

fn report_latency(arguments: &Arguments, pipeline: &Pipeline, report: &RunReport) -> Result<(), Failure> {
    let Some(summary) = &report.summary else { return Ok(()) };
    if arguments.latency {
        say_latency("sizeleak", summary, arguments.log.format());
    }
    let Some(log) = arguments.latency_log.as_ref().or(pipeline.latency_log.as_ref()) else { return Ok(()) };
    save_latency_log(log, summary, report.start, report.clock).map_err(|message| anyhow::anyhow!(message).into())
}

/// Writes frames, and keeps what is to be said of them on stderr.
struct Shown {
    writer: OutputWriter<File>,
    is_verbose: bool,
    notices: BTreeMap<String, u64>,
    /// How many of each kind, the rows of batches counted.
    rows: BTreeMap<String, u64>,
    /// Where they are shown while it runs, if anybody looks.
    telemetry: Option<Telemetry>,
    /// How many rows came since they were shown there.
    unshown: u64,
}

impl FrameSink for Shown {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        let written = self.write(frames);
        frames.clear();
        written
    }

    fn pause(&mut self) -> io::Result<()> {
        self.show();
        self.writer.flush()
    }
}

impl Shown {
    fn write(&mut self, frames: &[Frame]) -> io::Result<()> {
        for alike in frames.chunk_by(Frame::is_same_kind) {
            let Some(first) = alike.first() else { continue };
            let rows = if first.is_batch() { alike.iter().map(Frame::rows).sum() } else { alike.len() as u64 };
            match first {
                Frame::Notice(_) => alike.iter().for_each(|frame| self.note(frame)),
                Frame::Hello(_) | Frame::Summary(_) => {}
                _ => self.count(first.kind(), rows),
            }
            self.unshown += rows;
            self.writer.write_kind(first.kind(), alike)?;
        }
        if self.unshown >= BATCH_ROWS as u64 {
            self.show();
        }
        Ok(())
    }

    fn show(&mut self) {
        self.unshown = 0;
        if let Some(telemetry) = &self.telemetry {
            telemetry.set_output(&self.rows);
        }
    }

    fn note(&mut self, frame: &Frame) {
        let Frame::Notice(notice) = frame else { return };
        *self.notices.entry(notice.what.to_string()).or_default() += 1;
        if let Some(telemetry) = &self.telemetry {
            telemetry.count_notice(notice);
        }
        log::notice(notice);
    }

    fn count(&mut self, kind: &str, rows: u64) {
        match self.rows.get_mut(kind) {
            Some(before) => *before += rows,
            None if rows > 0 => _ = self.rows.insert(kind.to_owned(), rows),
            None => {}
        }
    }

    fn say(&mut self) {
        let rows = if self.rows.is_empty() { "nothing came out".to_owned() } else { listed(&self.rows) };
        let notices = match (self.notices.is_empty(), self.is_verbose) {
            (true, _) => String::new(),
            (false, true) => format!("; notices: {}", listed(&self.notices)),
            (false, false) => format!("; notices: {} (-v prints each)", listed(&self.notices)),
        };
        say("sizeleak", &format!("{rows}{notices}"));
    }
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}
