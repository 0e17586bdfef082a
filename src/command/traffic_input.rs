//! What a command reads: captures, folders of them, or saved streams, with the pipeline, its options and its gateway; or the
//! answers of earlier runs, as frames, JSON lines or Parquet, and folders of them.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use clap::{Args, ValueHint};
use sizeleak_capture::{content_below, is_capture};
use sizeleak_frame::Frame;
use sizeleak_model::ModelSet;
use sizeleak_output::{AnswerSink, read_answers};
use sizeleak_pipeline::recording::open;
use sizeleak_pipeline::{ConfigError, Pipeline};
use sizeleak_platform::runtime::{Interrupt, stdin};
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::TimeRange;
use sizeleak_traffic::survey::{SurveyReport, SurveyRun, SurveyedAddress, Verdict};

use super::failure::{usage, with_code};
use super::session::{Content, Operand};
use super::shared_options::{INPUT, STAGES, TimeCut};

#[derive(Debug, Args)]
pub(super) struct TrafficInput {
    /// Captures (`-` is stdin), saved streams or a pipeline file, recognised by content
    #[arg(value_name = "FILE", value_parser = Operand::parser(), value_hint = ValueHint::AnyPath)]
    pub(super) operands: Vec<Operand>,

    /// Whether it was said which gateway was chosen.
    #[arg(skip)]
    is_choice_said: Cell<bool>,
}

/// Whether the program may have been meant to read stdin: it is a pipe or a file, no terminal, device, nor closed.
fn is_stdin_piped() -> bool {
    let metadata = stdin().and_then(|stdin: File| stdin.metadata());
    let is_piped = |kind: std::fs::FileType| kind.is_fifo() || kind.is_file() || kind.is_socket();
    metadata.is_ok_and(|metadata| is_piped(metadata.file_type()))
}

impl TrafficInput {
    pub(super) fn captures(&self) -> Vec<PathBuf> {
        self.holding(Content::Capture).map(Path::to_owned).collect()
    }

    /// The captures that a pipeline reads, with those below the folders in place of these, and how many files there are no
    /// captures, or cannot be read.
    pub(super) fn single_captures(pipeline: &Pipeline) -> (Vec<PathBuf>, usize) {
        let (mut single, mut skipped) = (Vec::new(), 0);
        for capture in pipeline.captures() {
            if capture.is_dir() {
                let content = content_below(&capture);
                let (captures, others): (Vec<_>, Vec<_>) = content.files.into_iter().partition(|file| is_capture(file));
                single.extend(captures);
                skipped += others.len() + content.special.len() + content.unreadable.len();
            } else {
                single.push(capture);
            }
        }
        (single, skipped)
    }

    pub(super) fn streams(&self) -> Vec<PathBuf> {
        self.holding(Content::Stream).map(Path::to_owned).collect()
    }

    pub(super) fn pipeline(&self) -> Result<Option<&Path>> {
        if let Some(settings) = self.holding(Content::Settings).next() {
            let settings = settings.display();
            return Err(usage!(
                "{settings} is no file: options of stages are set with `--set`, and `sizeleak evaluate` compares pipelines if \
                 several are named"
            ));
        }
        let mut named = self.holding(Content::Pipeline);
        let first = named.next();
        first.zip(named.next()).map_or(Ok(first), |(first, second)| Err(both_pipelines(first, second)))
    }

    fn holding(&self, content: Content) -> impl Iterator<Item = &Path> {
        let is = move |operand: &&Operand| match operand.content {
            // Other commands do not take them: `capture` says so.
            Content::Answers => content == Content::Capture,
            other => other == content,
        };
        self.operands.iter().filter(is).map(|operand| &*operand.path)
    }

    /// Checks what no stage would: that captures and streams are not mixed, and that nothing stands among them
    /// that an option names.
    pub(super) fn check(&self) -> Result<()> {
        self.operands.iter().try_for_each(Operand::check_place)?;
        if let (Some(capture), Some(stream)) = (self.captures().first(), self.streams().first()) {
            let (capture, stream) = (capture.display(), stream.display());
            return Err(usage!("{stream} is a saved frame stream, and {capture} is not: read one kind of input"));
        }
        Ok(())
    }

    /// The pipeline of a file, or else the standard one, over what is named, which a command reads more than once, with
    /// these models and options, and more of these; its gateway is chosen if it has none.
    pub(super) fn rereadable(
        &self,
        file: Option<&Path>,
        models: &[PathBuf],
        options: &StageOptionArguments,
        more: &[String],
    ) -> Result<Pipeline> {
        let mut pipeline = file.map_or_else(|| Ok(Pipeline::standard()), Pipeline::read)?;
        self.check_rereadable(&pipeline)?;
        self.read_captures(&mut pipeline)?;
        options.apply(&mut pipeline, models)?;
        more.iter().try_for_each(|option| pipeline.set_text(option))?;
        if self.streams().is_empty()
            && let Some(chosen) = find_gateway(&mut pipeline, &Interrupt::on_signals()?)?
            // Several pipelines read the same captures.
            && !self.is_choice_said.replace(true)
        {
            say("sizeleak", &chosen);
        }
        // Files that a pipeline writes belong to `sizeleak run`.
        pipeline.settings.latency_log = None;
        Ok(pipeline.without_saves())
    }

    /// Checks the input of a command that reads it more than once, by a pipeline of which it takes captures if it names none
    /// itself.
    fn check_rereadable(&self, pipeline: &Pipeline) -> Result<()> {
        self.check()?;
        let (mut named, streams) = (self.captures(), self.streams());
        named.extend(streams);
        if named.is_empty() {
            named = pipeline.captures();
        }
        let is_stdin = match named.as_slice() {
            [] => is_stdin_piped(),
            named => named.iter().any(|file| file == Path::new("-")),
        };
        if is_stdin {
            return Err(usage!("the input is read more than once: write stdin to a file first"));
        }
        if named.is_empty() {
            return Err(usage!("no capture is named: write its name, or that of a pipeline file that names it"));
        }
        Ok(())
    }

    pub(super) fn read_captures(&self, pipeline: &mut Pipeline) -> Result<()> {
        let captures = self.captures();
        if !captures.is_empty() {
            pipeline.read_captures(&captures)?;
        }
        // Whoever names a folder means what is in it.
        if captures.iter().any(|capture| capture.is_dir()) {
            pipeline.set("capture", "recursive", true)?;
        }
        Ok(())
    }

    /// Says that stdin, which may be meant as the input, is not read where the pipeline file names captures.
    pub(super) fn report_unread_stdin(&self, pipeline: &Pipeline) {
        let is_named = !self.streams().is_empty() || self.holding(Content::Capture).next().is_some();
        let files = pipeline.captures();
        let reads_stdin = files.is_empty() || files.iter().any(|file| file == Path::new("-"));
        if !is_named && !reads_stdin && is_stdin_piped() {
            say("note", "stdin is not read: the pipeline file names captures (`-` reads stdin instead)");
        }
    }
}

pub(super) fn both_pipelines(first: &Path, second: &Path) -> anyhow::Error {
    let (first, second) = (first.display(), second.display());
    usage!("{first} and {second} are both pipeline files: one is used (`sizeleak evaluate` compares several)")
}

/// Options that take precedence over the pipeline file.
#[derive(Debug, Args)]
pub(super) struct StageOptionArguments {
    /// The gateway's address or network; can be repeated
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',', help_heading = INPUT)]
    gateway: Vec<String>,

    /// Set an option of a stage, as in pruner.keep=1 (`STAGE --help` lists them); can be repeated
    #[arg(long, value_name = "STAGE.KEY=VALUE", help_heading = STAGES)]
    set: Vec<String>,
}

impl StageOptionArguments {
    /// The addresses of gateways that are named; networks are none.
    pub(super) fn gateways(&self) -> Vec<IpAddr> {
        self.gateway.iter().filter_map(|gateway| gateway.parse().ok()).collect()
    }

    pub(super) fn apply(&self, pipeline: &mut Pipeline, models: &[PathBuf]) -> Result<(), ConfigError> {
        if !self.gateway.is_empty() {
            pipeline.set(FLOW_FILTER, GATEWAY, self.gateway.clone())?;
        }
        if !models.is_empty() {
            pipeline.use_models(models)?;
        }
        self.set.iter().try_for_each(|option| pipeline.set_text(option))
    }

    pub(super) fn name_a_model(&self) -> bool {
        let mut keys = self.set.iter().filter_map(|option| option.split_once('=')?.0.split_once('.'));
        keys.any(|(_, key)| key.trim() == "model")
    }
}

const FLOW_FILTER: &str = "flow-filter";
const GATEWAY: &str = "gateway";

/// So many addresses are described where none is clearly a gateway.
const MAX_DESCRIBED: usize = 3;

/// Sets the gateway of a pipeline that has none: that of its models, or else the only one that
/// a survey of the captures finds. It is said which. The pipeline stays as it is where nothing is to be chosen.
pub(super) fn choose_gateway(pipeline: &mut Pipeline) -> Result<()> {
    if let Some(chosen) = find_gateway(pipeline, &Interrupt::on_signals()?)? {
        say("sizeleak", &chosen);
    }
    Ok(())
}

/// Sets the gateway of a pipeline that has none: that of its models, or else the only one that a survey of its captures
/// finds. Returns which, in words; `None` where nothing is to be chosen.
pub(super) fn find_gateway(pipeline: &mut Pipeline, interrupt: &Interrupt) -> Result<Option<String>> {
    if !pipeline.has(FLOW_FILTER) || pipeline.option(FLOW_FILTER, GATEWAY).is_some() {
        return Ok(None);
    }
    let (found, reason) = match of_models(&pipeline.models()) {
        Some(found) => (found, "as the model's"),
        None => (vec![surveyed(pipeline.captures(), interrupt)?], "the only one that a survey finds"),
    };
    let chosen = format!("gateway {}, {reason}", found.join(", "));
    pipeline.set(FLOW_FILTER, GATEWAY, found)?;
    Ok(Some(chosen))
}

/// The gateways that models are for, if each is for one. What is wrong with a model, the stages that use it say.
fn of_models(models: &[PathBuf]) -> Option<Vec<String>> {
    if models.is_empty() {
        return None;
    }
    let models = ModelSet::read(models).ok()?;
    let gateways = models.sections().iter().map(|model| Some(model.scope.gateway?.to_string()));
    let gateways: BTreeSet<String> = gateways.collect::<Option<_>>()?;
    Some(gateways.into_iter().collect())
}

fn surveyed(captures: Vec<PathBuf>, interrupt: &Interrupt) -> Result<String> {
    let missing = "`--gateway IP|CIDR` is missing: name the gateway of these captures";
    if captures.is_empty() || captures.iter().any(|capture| capture == Path::new("-")) {
        return Err(usage!("{missing}; `sizeleak survey CAPTURE` says which addresses look like gateways"));
    }
    let run = SurveyRun { captures, recursive: true, gateways: Vec::new() };
    let report = run.survey(interrupt, &mut |_| {})?.report;
    let likely = report.addresses.iter().filter(|address| address.verdict == Verdict::Likely);
    let likely: Vec<String> = likely.map(|address| address.address.to_string()).collect();
    let found = match likely.as_slice() {
        [only] => return Ok(only.clone()),
        [] => "a survey finds no address that clearly looks like one".to_owned(),
        several => format!("{} look like one", several.join(", ")),
    };
    Err(usage!("{missing}, as {found}{}{}", described(&report.addresses), servers(&report)))
}

/// The addresses that might be a gateway that others connect to, as the end of a sentence.
fn servers(report: &SurveyReport) -> String {
    let named: Vec<String> =
        report.servers.iter().take(MAX_DESCRIBED).map(|server| server.address.to_string()).collect();
    if named.is_empty() {
        return String::new();
    }
    format!("; or else {}, to which only others opened connections", named.join(", "))
}

/// The addresses that look most like a gateway, with what speaks for them, as the end of a sentence.
fn described(addresses: &[SurveyedAddress]) -> String {
    let line = |address: &SurveyedAddress| {
        let reasons = address.reasons.iter().filter(|reason| reason.points > 0).map(|reason| reason.text.as_str());
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        format!("{} ({} of 100 points: {reasons})", address.address, address.score)
    };
    let seen: Vec<String> =
        addresses.iter().filter(|address| address.score > 0).take(MAX_DESCRIBED).map(line).collect();
    if seen.is_empty() { String::new() } else { format!("; most like one is {}", seen.join(", then ")) }
}

/// The endings of the files of a folder that are answers; others are passed over.
const ENDINGS: [&str; 5] = [".parquet", ".frames", ".frames.zst", ".frames.gz", ".ndjson"];

#[derive(Debug, Args)]
pub(super) struct AnswersInput {
    /// Answers in order of time: frames, JSON lines or Parquet, as `sizeleak run` and `archive` write them
    ///
    /// Of a folder, all files in it by their names: `.parquet`, `.ndjson`, `.frames`, and the last compressed. `-` is
    /// stdin.
    #[arg(value_name = "ANSWERS", required = true, help_heading = INPUT)]
    pub(super) answers: Vec<PathBuf>,
}

impl AnswersInput {
    /// Reads the answers of a time, file by file; `file_ends` is called behind each. Says how many there are.
    ///
    /// # Errors
    /// Also if there are answers, and none is of that time.
    pub(super) fn read<S: AnswerSink>(
        &self,
        range: TimeRange,
        sink: &mut S,
        mut file_ends: impl FnMut(&mut S, &Path) -> Result<()>,
    ) -> Result<()> {
        let mut within = Within { sink, cut: TimeCut::new(range) };
        for operand in &self.answers {
            let files = if operand.is_dir() { answers_below(operand)? } else { vec![operand.clone()] };
            if files.is_empty() {
                let known = ENDINGS.join(", ");
                return Err(anyhow!("{} holds no answers: none of its files ends in {known}", operand.display()));
            }
            for file in files {
                let (input, name) = open(Some(&file))?;
                Answers::of(BufReader::new(input), Some(&file), &name)?.read(&name, &mut within)?;
                file_ends(within.sink, &file)?;
            }
        }
        within.cut.report("answers")
    }
}

struct Within<'a, S> {
    sink: &'a mut S,
    cut: TimeCut,
}

impl<S: AnswerSink> AnswerSink for Within<'_, S> {
    fn add(&mut self, frame: Frame) {
        if self.cut.keeps(&frame) {
            self.sink.add(frame);
        }
    }

    fn learn(&mut self, flow: u64, gateway: Option<&str>, service: Option<&str>) {
        self.sink.learn(flow, gateway, service);
    }
}

/// The answers of a folder and its folders, in order of their paths. Symbolic links to folders are not followed.
fn answers_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let content = content_below(folder);
    if let Some((path, error)) = content.unreadable.into_iter().next() {
        return Err(Error::from(error).context(path.display().to_string()));
    }
    let mut answers = content.files;
    answers.extend(content.special.into_iter().map(|special| special.path));
    answers.retain(|path| ENDINGS.iter().any(|ending| path.as_os_str().to_string_lossy().ends_with(ending)));
    answers.sort();
    Ok(answers)
}

pub(super) enum Answers {
    /// Frames or JSON lines.
    Stream(Box<dyn Read>),
    Parquet(PathBuf),
}

impl Answers {
    pub(super) fn of(mut input: impl BufRead + 'static, file: Option<&Path>, name: &str) -> Result<Self> {
        if !input.fill_buf().with_context(|| name.to_owned())?.starts_with(b"PAR1") {
            return Ok(Self::Stream(Box::new(input)));
        }
        let file = file.filter(|path| path.is_file());
        let file = file.ok_or_else(|| anyhow!("{name} is Parquet, whose end is read first: name a file"))?;
        Ok(Self::Parquet(file.to_owned()))
    }

    /// Reads the answers; everything before an error has been added.
    pub(super) fn read(self, name: &str, sink: &mut dyn AnswerSink) -> Result<()> {
        match self {
            Self::Stream(input) => read_answers(input, sink).map_err(|error| {
                let code = if error.is_cut() { 3 } else { 1 };
                with_code(code, anyhow!("{name}: {error}"))
            }),
            Self::Parquet(path) => read_parquet(&path, sink),
        }
    }
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path, sink: &mut dyn AnswerSink) -> Result<()> {
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    sizeleak_output::read_parquet_answers(file, sink).map_err(|error| anyhow!("{}: {error}", path.display()))
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path, _: &mut dyn AnswerSink) -> Result<()> {
    Err(anyhow!("{}: this program was built without Parquet", path.display()))
}
