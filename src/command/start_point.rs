//! Where `sizeleak run` starts: at the captures, at saved streams, or with `--state` where an earlier run has stopped; and the
//! file ./pipeline.toml that it may find.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use sizeleak_output::OutputFormat;
use sizeleak_pipeline::registry::STAGES;
use sizeleak_pipeline::{
    Checkpoint, CheckpointError, PendingCheckpoint, Pipeline, PreparedRun, RunEnding, RunReport, SavedStream,
};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::storage::OutputFile;
use sizeleak_platform::telemetry::log::say;

use super::failure::{usage, with_code};
use super::session::{Operand, Session};
use super::shared_options::{INPUT, TimeRangeOption};
use super::traffic_input::TrafficInput;

fn open_streams(streams: &[PathBuf], interrupt: &Interrupt) -> Result<SavedStream> {
    let opened = match streams {
        [only] => SavedStream::open(only, interrupt),
        several => SavedStream::joined(several, interrupt),
    };
    opened.map_err(|error| {
        if interrupt.is_set() { with_code(130, anyhow!("stopped before the first frame")) } else { error.into() }
    })
}

/// Reports files that were not saved; `run` is `None` if the run failed.
pub(super) fn report_unsaved(saves: &[PathBuf], run: Option<&RunReport>) {
    let kept = run.map_or(&[][..], |run| &run.saved);
    let why = match run.map(|run| run.ending) {
        None => "the run failed",
        Some(RunEnding::Interrupted) => "the run was stopped",
        Some(RunEnding::Closed) => "the output was not read to its end",
        Some(RunEnding::Done) => "the next stage did not read to its end",
    };
    for path in saves.iter().filter(|path| !kept.contains(path)) {
        say("sizeleak", &format!("{} is not written: {why}", path.display()));
    }
}

/// The first file that is another one's, whatever its names are.
fn named_twice(files: &[PathBuf]) -> Option<&Path> {
    let mut seen = BTreeSet::new();
    let mut is_again = |file: &&Path| !seen.insert(file.canonicalize().unwrap_or_else(|_| file.to_path_buf()));
    files.iter().map(PathBuf::as_path).find(|file| is_again(file))
}

pub(super) const FILE: &str = "pipeline.toml";

const MODEL: &str = "model";

/// Checks that what the user names is not answered with a model that only the file names: it may be of another gateway.
pub(super) fn refuse_model(pipeline: &Pipeline) -> Result<()> {
    let Some(model) = STAGES.iter().find_map(|stage| pipeline.option(stage.name, MODEL)) else { return Ok(()) };
    let model = model.as_str().map_or_else(|| model.to_string(), str::to_owned);
    Err(usage!(
        "the input is named here, but its model only in ./{FILE} ({model}), which may be of another gateway: name the \
         model with `--model FILE`, use that pipeline with `sizeleak run {FILE} …`, or run the standard pipeline from \
         another folder"
    ))
}

/// The kinds of frame that a run with a state writes.
const KINDS: [&str; 6] = ["flow", "session", "record", "notice", "hello", "summary"];

const LAST_KIND: &str = "record";

/// What a run reads, of which time, and where its flows come from and go to.
#[derive(Debug, Args)]
pub(super) struct StartPoint {
    #[command(flatten)]
    pub(super) input: TrafficInput,

    /// Continue from this saved frame stream, such as `-`; a file needs no option
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    from: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) range: TimeRangeOption,

    /// Continue the flows of an earlier run from the state in FILE, and leave the next state there. For captures that
    /// arrive one by one: flows go on from each to the next, and the frames of all runs together are those of one run
    /// over all captures, which must not overlap in time. A new state begins where there is no FILE. The run ends with
    /// the records; `sizeleak run RECORDS…` makes commands of all of them. FILE changes only if the run ends well.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "since", "until"], help_heading = INPUT)]
    state: Option<PathBuf>,

    /// With `--state`: end all flows behind the captures, if any are named, and remove the state
    #[arg(long, requires = "state", help_heading = INPUT)]
    finish: bool,
}

#[derive(Debug)]
pub(super) struct ContinuedRun<'a> {
    pub(super) path: &'a Path,
    /// The states that it will leave, and their file; `None` if it ends all flows.
    next: Option<(PendingCheckpoint, OutputFile)>,
}

impl StartPoint {
    pub(super) fn take_streams(&mut self) {
        let from = std::mem::take(&mut self.from);
        self.input.operands.splice(0..0, from.into_iter().map(Operand::stream));
    }

    pub(super) fn found_pipeline(&self) -> Result<Option<Pipeline>> {
        let file = Path::new(FILE);
        let is_wanted = self.input.pipeline()?.is_none() && file.is_file();
        Ok(if is_wanted { Some(Pipeline::read(file)?) } else { None })
    }

    /// Whether the run only ends the flows of earlier ones.
    fn has_no_traffic(&self) -> bool {
        self.finish && self.input.captures().is_empty()
    }

    /// The kinds that a pipeline has to make, given those that are asked for.
    pub(super) fn needed(&self, kinds: &[String]) -> Vec<String> {
        if self.state.is_some() { vec![LAST_KIND.to_owned()] } else { kinds.to_vec() }
    }

    /// Prepares the run of a pipeline up to where it makes these kinds, at the captures or at saved streams; `found` is a
    /// pipeline whose model nobody named. Nothing is written if two files conflict.
    pub(super) fn prepare(
        &self,
        pipeline: &mut Pipeline,
        kinds: &[String],
        found: Option<&Pipeline>,
        session: &mut Session,
        interrupt: &Interrupt,
    ) -> Result<PreparedRun> {
        let kinds = self.needed(kinds);
        let streams = if self.state.is_some() { Vec::new() } else { self.input.streams() };
        if let Some(again) = named_twice(&streams) {
            return Err(usage!("{} is named twice: its traffic would count twice", again.display()));
        }
        if !streams.is_empty() {
            let replay = open_streams(&streams, interrupt)?;
            let position = pipeline.index_of(&replay)?;
            let behind = found.map(|found| found.making(&kinds, Some(position)).behind(position));
            behind.as_ref().map_or(Ok(()), refuse_model)?;
            *pipeline = pipeline.making(&kinds, Some(position));
            session.check_files(pipeline.files(Some(position + 1)))?;
            say("sizeleak", &format!("{} from {}", pipeline.output_of(position), replay.name()));
            return Ok(pipeline.prepare_from(Some((position, replay)))?);
        }
        *pipeline = pipeline.making(&kinds, None);
        if !self.has_no_traffic() {
            session.check(pipeline)?;
            return Ok(pipeline.prepare_from(None)?);
        }
        session.check_files(pipeline.files(Some(1)))?;
        let source = pipeline.resolved_stages().first().map_or("", |stage| stage.entry.name);
        Ok(pipeline.prepare_from(Some((0, SavedStream::empty(source)?)))?)
    }

    /// Lets a pipeline end where its state can be saved. Fails if other kinds are asked for, or the rows of the format
    /// would say something of flows that an earlier run has seen.
    pub(super) fn limit(&self, pipeline: Pipeline, kinds: &[String], format: OutputFormat) -> Result<Pipeline> {
        let Some(path) = &self.state else { return Ok(pipeline) };
        if path.as_os_str() == "-" {
            return Err(usage!("`--state` names a file that is read and written, not `-`"));
        }
        if let Some(stream) = self.input.streams().first() {
            return Err(usage!("{} is a saved stream: runs with `--state` read captures", stream.display()));
        }
        if let Some(kind) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(usage!(
                "a run with `--state` ends with the records, and makes no `{kind}`: write all its \
                 frames to a file for each capture (`-o 1.frames`), and continue with `sizeleak run` over all these files"
            ));
        }
        if format != OutputFormat::Frames {
            return Err(usage!(
                "a run with `--state` writes frames, as `-o records.frames` or `--format frames` does: rows of other \
                 formats name the ends of a flow, which may be in the output of an earlier run"
            ));
        }
        Ok(pipeline.until_records()?)
    }

    pub(super) fn begin(&self, prepared: &mut PreparedRun, pipeline: &Pipeline) -> Result<Option<ContinuedRun<'_>>> {
        let Some(path) = &self.state else { return Ok(None) };
        let named = |error: anyhow::Error| with_code(1, error).context(path.display().to_string());
        match Checkpoint::read(path) {
            Ok(checkpoint) => {
                let continued = prepared.continue_from(pipeline, &checkpoint);
                continued.map_err(|error| named(error.into()))?;
            }
            Err(CheckpointError::Io(error)) if error.kind() == ErrorKind::NotFound && !self.has_no_traffic() => {
                say("sizeleak", &format!("there is no state in {}: a new one begins", path.display()));
            }
            Err(CheckpointError::Io(error)) if error.kind() == ErrorKind::NotFound => {
                return Err(named(anyhow!("there is no such state, so no flows are left to end")));
            }
            Err(error) => return Err(named(error.into())),
        }
        if self.finish {
            return Ok(Some(ContinuedRun { path, next: None }));
        }
        let pending = prepared.leave_state(pipeline)?;
        let mut file = OutputFile::create(path)?;
        // It holds segments with their content.
        file.make_private()?;
        Ok(Some(ContinuedRun { path, next: Some((pending, file)) }))
    }
}

impl ContinuedRun<'_> {
    pub(super) fn unread(&self) -> anyhow::Error {
        unchanged(self.path, "the output was not read to its end")
    }

    /// Keeps the next state, or removes the last one, after a run that has succeeded, and whose output is kept.
    pub(super) fn keep(self) -> Result<()> {
        let Some((pending, mut file)) = self.next else {
            return match fs::remove_file(self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let fault = format!("the flows are ended, but {} cannot be removed", self.path.display());
                    Err(anyhow::Error::from(error).context(fault))
                }
                _ => Ok(()),
            };
        };
        let Some(checkpoint) = pending.taken() else { return Err(unchanged(self.path, "a stage has left no state")) };
        let written = checkpoint.to_bytes().map_err(anyhow::Error::from).and_then(|bytes| {
            file.writer()?.write_all(&bytes)?;
            Ok(())
        });
        written.with_context(|| format!("{} is unchanged", self.path.display()))?;
        Ok(file.keep()?)
    }
}

fn unchanged(state: &Path, why: &str) -> anyhow::Error {
    with_code(1, anyhow!("{} is unchanged: {why}", state.display()))
}
